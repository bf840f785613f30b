# Links that are swapped in while calls run: nothing outside the base directory is read or changed. ABX_TEST_LONG=1 makes it 20 seconds.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use AbxServer;
use IO::Uncompress::Gunzip qw(gunzip);
use MIME::Base64;
use POSIX ();
use Test::More;
use Time::HiRes qw(time);

my $SECONDS = $ENV{ABX_TEST_LONG} ? 20 : 5;
my $CLIENTS = 4;
my $server = AbxServer->start;
my $base = $server->base;
my $outside = AbxServer::temp_dir();
my $SECRET = 'outside-content-outside-content-outside-content';
my $end = time + $SECONDS;

mkdir "$outside/$_" for qw(sub sub/dir);
AbxServer::spew("$outside/$_", $SECRET) for qw(secret file sub/secret sub/dir/secret);
symlink '/etc/passwd', "$outside/passwd";
my $before = state_of($outside);

# Everything that can be seen of a tree.
sub state_of {
	my ($dir) = @_;
	my $text = '';

	opendir my $list, $dir or return "$dir: $!";
	for my $name (sort grep { !/\A\.\.?\z/ } readdir $list) {
		my $path = "$dir/$name";
		my @st = lstat $path;
		my $content = -f $path && !-l $path ? AbxServer::slurp($path) : readlink $path;

		$text .= join ' ', $path, @st[1, 2, 3, 4, 5, 7, 9, 10], defined $content ? $content : '', "\n";
		$text .= state_of($path) if -d $path && !-l $path;
	}
	return $text;
}

# Put `new` where `path` is, and what was there to `aside`, in two steps that a call can fall between.
sub swap {
	my ($path, $new, $aside) = @_;

	rename $path, $aside;
	rename $new, $path;
}

# A directory that is a link to the outside every other moment, a file that is one to a file there, and a directory above both.
sub swapper {
	mkdir "$base/top";
	for (my $i = 0; time < $end; $i++) {
		mkdir "$base/top/dir";
		mkdir "$base/top/dir/sub";
		open my $file, '>', "$base/top/file" or next;
		close $file;
		symlink "$outside", "$base/spare-dir$i";
		symlink $i % 2 ? '/etc/passwd' : "$outside/secret", "$base/spare-file$i";
		symlink $outside, "$base/spare-top$i";
		for (1 .. 20) {
			swap("$base/top/dir", "$base/spare-dir$i", "$base/aside");
			swap("$base/top/file", "$base/spare-file$i", "$base/aside-file");
			swap("$base/top/dir", "$base/aside", "$base/spare-dir$i");
			swap("$base/top/file", "$base/aside-file", "$base/spare-file$i");
			swap("$base/top", "$base/spare-top$i", "$base/aside-top");
			swap("$base/top", "$base/aside-top", "$base/spare-top$i");
		}
		unlink map { "$base/spare-$_$i" } qw(dir file top);
	}
}

my %calls = (
	upload => sub { $server->post('/upload', { path => $_[0] ? 'top/file' : 'top/dir/secret', content_base64 => 'YQ==' }) },
	upload_raw => sub { $server->request('POST', '/upload?path=top/dir/sub/new', content => 'a', headers => { 'Content-Type' => 'application/octet-stream' }) },
	download => sub { $server->get($_[0] ? '/download?path=top/file' : '/download?path=top/dir/secret') },
	download_raw => sub { $server->get($_[0] ? '/download?raw=1&path=top/file' : '/download?raw=1&path=top/dir/sub/secret') },
	list => sub { $server->get($_[0] ? '/files/list?path=top/dir' : '/files/list?path=top&recursive=1') },
	search => sub { $server->post('/files/search', { path => $_[0] ? 'top' : 'top/dir', pattern => '*' }) },
	stat => sub { $server->get('/files/stat?path=top/dir/secret') },
	mkdir => sub { $server->post('/files/mkdir', { path => 'top/dir/sub/made/below' }) },
	move_in => sub { $server->post('/files/move', { source => 'top/dir/secret', destination => 'taken' }) },
	move_out => sub { $server->post('/files/move', { source => 'top/file', destination => 'top/dir/sub/put' }) },
	delete => sub { $server->delete($_[0] ? '/files?path=top/dir/sub' : '/files?path=top/dir/secret') },
	delete_tree => sub { $server->delete('/files?path=top/dir') },
	archive => sub { $server->post('/files/archive', { paths => [$_[0] ? 'top' : 'top/dir'] }) },
	archive_file => sub { $server->post('/files/archive', { paths => ['top/file'] }) },
);

# Whether an answer shows anything of the outside. What is read has all forms that an answer can give it.
sub shows {
	my ($answer) = @_;
	my $content = defined $answer->{content} ? $answer->{content} : '';
	my $bytes = $answer->{json} && ref $answer->{json} eq 'HASH' && $answer->{json}{content_base64} ? decode_base64($answer->{json}{content_base64}) : '';
	my $unpacked = '';

	gunzip(\$bytes => \$unpacked) if $bytes =~ /\A\x1f\x8b/;
	return $content =~ /\Q$SECRET\E|root:/ || $bytes =~ /\Q$SECRET\E|root:/ || $unpacked =~ /\Q$SECRET\E|root:/ || $content =~ /\Q$outside\E/
		|| ($answer->{status} == 200 && $content =~ /"passwd"/);
}

# Runs until the end; prints how often each call ended with which status, and what should never be seen.
sub client {
	my ($seed) = @_;
	my @ids = sort keys %calls;
	my %seen;

	srand $seed;
	delete $server->{http};
	while (time < $end) {
		my $id = $ids[rand @ids];
		my $answer = $calls{$id}->(rand() < 0.5);

		$seen{"$id $answer->{status}"}++;
		print "SHOWN $id: $answer->{content}\n" if shows($answer);
		print "BROKEN $id: $answer->{status} $answer->{content}\n" if $answer->{status} >= 599;
	}
	print "$_ $seen{$_}\n" for sort keys %seen;
}

# Run a function in a process of its own; returns what its output is read from.
sub in_child {
	my ($function) = @_;
	my $pid = open my $out, '-|';

	die "fork: $!" unless defined $pid;
	return $out if $pid;
	$function->();
	close STDOUT;
	POSIX::_exit(0);
}

my $swapper = in_child(\&swapper);
my @clients = map { my $seed = $_; in_child(sub { client($seed) }) } 1 .. $CLIENTS;
my (%count, @bad);
for my $out (@clients, $swapper) {
	while (my $line = <$out>) {
		if ($line =~ /\A(\w+) (\d+) (\d+)$/) {
			$count{$1}{$2} += $3;
		} else {
			push @bad, $line;
		}
	}
	close $out;
}

is_deeply \@bad, [], 'nothing of the outside is shown';
is state_of($outside), $before, 'and nothing there has changed';
for my $id (sort keys %calls) {
	my %by = %{ $count{$id} || {} };
	note "$id: ", join ', ', map { "$_: $by{$_}" } sort keys %by;
}
my ($worked, $refused) = (0, 0);
for my $id (keys %count) {
	$worked += $count{$id}{200} || 0;
	$refused += $count{$id}{403} || 0;
}
cmp_ok $worked, '>', 20, "calls went through ($worked)";
cmp_ok $refused, '>', 20, "and calls met the links ($refused)";
is $server->get('/files/stat?path=.')->{status}, 200, 'the server goes on';

$server->stop;
done_testing;
