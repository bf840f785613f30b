# Names that are hard to carry, on every endpoint of files, in JSON and in queries.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use AbxServer;
use MIME::Base64;
use Test::More;

my $server = AbxServer->start;
my $base = $server->base;

sub query_of { return $_[0] =~ s/([^A-Za-z0-9\/])/sprintf '%%%02X', ord $1/ger }

# What every endpoint says to a path: in the query, and in the body; by its bytes, where JSON cannot carry them.
sub calls {
	my ($bytes, $text) = @_;
	my $query = query_of($bytes);
	my %by_name = defined $text ? (path => $text) : (path_base64 => encode_base64($bytes, ''));
	my ($source, $destination) = defined $text ? qw(source destination) : qw(source_base64 destination_base64);
	my $value = $by_name{path} // $by_name{path_base64};
	my $other = defined $text ? 'other' : encode_base64('other', '');

	return (
		upload => sub { $server->post('/upload', { %by_name, content_base64 => 'YQ==' }) },
		upload_raw => sub { $server->request('POST', "/upload?path=$query", content => 'a', headers => { 'Content-Type' => 'application/octet-stream' }) },
		upload_stream => sub { $server->post('/files/upload-stream', { %by_name, content_base64 => 'YQ==' }) },
		stat => sub { $server->get("/files/stat?path=$query") },
		download => sub { $server->get("/download?path=$query") },
		download_raw => sub { $server->get("/download?path=$query&raw=1") },
		download_stream => sub { $server->get("/files/download-stream?path=$query") },
		archive => sub { $server->post('/files/archive', { defined $text ? (paths => [$text]) : (paths_base64 => [$value]) }) },
		move => sub { $server->post('/files/move', { $source => $value, $destination => $other }) },
		move_back => sub { $server->post('/files/move', { $source => $other, $destination => $value }) },
		delete => sub { $server->delete("/files?path=$query") },
		mkdir => sub { $server->post('/files/mkdir', \%by_name) },
		list => sub { $server->get("/files/list?path=$query") },
		search => sub { $server->post('/files/search', { %by_name, pattern => '*' }) },
		watch => sub { $server->get("/files/watch?path=$query&timeout=0.1") },
		delete_body => sub { $server->delete('/files', \%by_name) },
	);
}

my @ORDER = qw(upload upload_raw upload_stream stat download download_raw download_stream archive move move_back delete mkdir list search watch delete_body);

# Names that are fine: every call works, on exactly that name.
for my $name ("new\nline", "\r\n\t", 'quo"te', "apo's", 'back\\slash', '\\u0041', ' ', ' blanks ', '...', '..x', 'x..', '-rf', '--', '*', '?', '[a]', '{}', '%41', '%2e%2e', '%', '&a=b', 'a+b', '#x', ';x', '~', '$HOME',
	      '`id`', '|x', "\x01", "\x7f", 'x' x 255, "caf\xc3\xa9", "\xf0\x9f\x98\x80", "\xef\xbb\xbf", 'con', '.hidden', "\xff", "a\xc3", "\x80" x 255) {
	my $text = $name;
	my %call = calls($name, utf8::decode($text) ? $text : undef);
	my $shown = query_of($name);

	for my $id (@ORDER) {
		my $answer = $call{$id}->();
		is $answer->{status}, 200, "$id of '$shown'" or diag $answer->{content};
		ok -e "$base/$name", "$id of '$shown': it is there" if $id =~ /\A(?:upload|upload_raw|upload_stream|move_back|mkdir)\z/;
		is $answer->{json}{exists}, JSON::PP::true, "stat of '$shown'" if $id eq 'stat';
	}
	opendir my $dir, $base or die $!;
	is_deeply [grep { !/\A\.\.?\z/ } readdir $dir], [], "nothing is left of '$shown'";
}

# Names that are not: the same refusal everywhere, and nothing happens.
AbxServer::spew("$base/file", 'x');
for my $case (["a\0b", 400, 400], ["\0", 400, 400], ['', 400, 400], ['x' x 256, 400, 400], ['x/' x 2100 . 'x', 400, 400], ['..', 403, 403], ['../', 403, 403], ['../base', 403, 403],
	      ['/', 403, 403], ['//', 403, 403], ['/etc/passwd', 403, 403], ['x/../..', 403, 403], ['./../../etc/passwd', 403, 403], ['/proc/self/root', 403, 403], ['/proc/self/root' . $server->base . '/x', 403, 403]) {
	my ($path, $status) = @$case;
	my %call = calls($path, $path);

	# "../base" is beside the base directory only by its name: here it is the base directory itself.
	next if $path eq '../base' && $base =~ /\/base\z/;
	for my $id (grep { !/move_back/ } @ORDER) {
		is $call{$id}->()->{status}, $status, "$id of '" . substr(query_of($path), 0, 40) . "'";
	}
}
is AbxServer::slurp("$base/file"), 'x', 'nothing has happened';

# A slash behind a name: the name of a directory, and none of a file.
mkdir "$base/dir";
my %call = calls('file/', 'file/');
is $call{$_}->()->{status}, 400, "$_ of 'file/'" for qw(upload upload_raw upload_stream);
is $call{$_}->()->{status}, 404, "$_ of 'file/'" for qw(download download_raw download_stream archive list search watch move delete);
is $call{stat}->()->{json}{type}, 'file', "stat of 'file/'";
%call = calls('dir/', 'dir/');
is $call{$_}->()->{status}, 200, "$_ of 'dir/'" for qw(stat archive list search watch mkdir move move_back delete);

$server->stop;
done_testing;
