# Watches: the events of changes, their end, and what is left behind.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use AbxServer;
use Test::More;
use Time::HiRes;

my $server = AbxServer->start;
my $base = $server->base;

# An open watch: its socket, and the events that have come.
sub watch {
	my ($query) = @_;
	my $socket = $server->connect;

	syswrite $socket, "GET /files/watch?$query HTTP/1.1\r\nHost: x\r\n\r\n";
	return { socket => $socket, text => '', events => [] };
}

# Take the chunks apart, and the events.
sub digest {
	my ($watch) = @_;

	if (!$watch->{head} && $watch->{text} =~ s/\A(HTTP.*?\r\n\r\n)//s) {
		$watch->{head} = $1;
	}
	return unless $watch->{head};
	while ($watch->{text} =~ /\A([0-9a-f]+)\r\n/) {
		my ($size, $before) = (hex $1, length $&);
		last if length $watch->{text} < $before + $size + 2;
		$watch->{whole} = 1 if $size == 0;
		$watch->{stream} .= substr $watch->{text}, $before, $size;
		substr $watch->{text}, 0, $before + $size + 2, '';
	}
	while (defined $watch->{stream} && $watch->{stream} =~ s/\A(.*?)\n\n//s) {
		my $block = $1;
		push @{ $watch->{events} }, $block =~ /\Aevent: (\w+)\ndata: (.*)\z/s ? { name => $1, %{ AbxServer::decode_json($2) } } : { name => $block };
	}
}

# Wait for an event that the function likes; undef when none comes.
sub wait_event {
	my ($watch, $likes) = @_;
	my $end = Time::HiRes::time() + $AbxServer::PATIENCE;

	while (Time::HiRes::time() < $end) {
		digest($watch);
		my ($event) = grep { $likes->($_) } @{ $watch->{events} };
		return $event if $event;
		last if $watch->{closed} || $watch->{whole};
		my $ready = '';
		vec($ready, fileno $watch->{socket}, 1) = 1;
		select $ready, undef, undef, 1 or next;
		$watch->{closed} = !sysread $watch->{socket}, $watch->{text}, 65536, length $watch->{text};
	}
	digest($watch);
	my ($event) = grep { $likes->($_) } @{ $watch->{events} };
	return $event;
}

sub named { my ($watch, $name, $path) = @_; return wait_event($watch, sub { $_[0]{name} eq $name && (!defined $path || $_[0]{path} eq "$base/$path") }) }
sub to_end { my ($watch) = @_; wait_event($watch, sub { 0 }); return map { $_->{name} . (defined $_->{path} ? ' ' . $_->{path} =~ s/\A\Q$base\E\/?//r : '') } @{ $watch->{events} } }

mkdir "$base/w";
mkdir "$base/w/dir";
AbxServer::spew("$base/w/old", 'old');
AbxServer::spew("$base/w/dir/inner", 'x');

# ready, and the three kinds of changes.
my $watch = watch('path=w&recursive=true&timeout=60');
is_deeply named($watch, 'ready'), { name => 'ready', path => "$base/w", entries => 3 }, 'ready';
like $watch->{head}, qr/^Content-Type: text\/event-stream/m, 'the type';
like $watch->{head}, qr/^$_/m, $_ for 'Cache-Control: no-store', 'X-Accel-Buffering: no';
AbxServer::spew("$base/w/new", 'four');
my $event = named($watch, 'created', 'w/new');
is_deeply [sort keys %$event], [qw(modified name path size type)], 'the members of an event';
like $event->{modified}, qr/\A\d{4}-\d\d-\d\dT[\d:.]+\+00:00\z/, 'its time';
is $event->{type}, 'file', 'created: a file';
mkdir "$base/w/later";
mkdir "$base/w/later/down";
AbxServer::spew("$base/w/later/down/file", 'x');
is named($watch, 'created', 'w/later/down/file')->{size}, 1, 'a file in directories that were made later';
is named($watch, 'created', 'w/later/down')->{type}, 'directory', 'these directories';
AbxServer::spew("$base/w/later/down/file", 'longer');
is named($watch, 'modified', 'w/later/down/file')->{size}, 6, 'and a change there';
rename "$base/w/old", "$base/w/renamed";
is named($watch, 'deleted', 'w/old')->{size}, 3, 'a rename is a deletion, with the last figures';
ok named($watch, 'created', 'w/renamed'), 'and a creation';
Time::HiRes::utime(1000, 1000.5, "$base/w/renamed");
is named($watch, 'modified', 'w/renamed')->{modified}, '1970-01-01T00:16:40.500000+00:00', 'a time alone';
symlink '/etc', "$base/w/link";
is named($watch, 'created', 'w/link')->{type}, 'file', 'a link is a file, and not followed';
AbxServer::spew("$base/w/bad\xff", '');
is wait_event($watch, sub { $_[0]{path_base64} })->{name}, 'created', 'a name that is not UTF-8';
unlink "$base/w/dir/inner";
rmdir "$base/w/dir";
is named($watch, 'deleted', 'w/dir')->{type}, 'directory', 'a directory goes';
ok named($watch, 'deleted', 'w/dir/inner'), 'and what was in it';
ok !(grep { ($_->{path} || '') eq "$base/w" && $_->{name} ne 'ready' } @{ $watch->{events} }), 'the directory itself is no event';
ok !(grep { $_->{name} eq 'modified' && $_->{type} eq 'directory' } @{ $watch->{events} }), 'nor are the times of others';
close $watch->{socket};

# Not recursive.
$watch = watch('path=w&timeout=60');
is named($watch, 'ready')->{entries}, 5, 'not recursive: the entries of the directory alone';
AbxServer::spew("$base/w/later/unseen", '');
AbxServer::spew("$base/w/seen", '');
ok named($watch, 'created', 'w/seen'), 'a change in it';
ok !(grep { ($_->{path} || '') =~ /unseen/ } @{ $watch->{events} }), 'and none further down';
close $watch->{socket};

# The kernel's word comes before the next turn to look, which would be after the end.
$watch = watch('path=w&interval=5&timeout=3');
named($watch, 'ready');
AbxServer::spew("$base/w/soon", '');
is_deeply [to_end($watch)], ['ready w', 'created w/soon', 'end'], 'a change shows at once';

# Ends.
$watch = watch('path=w&timeout=0.2&interval=0.1');
is_deeply [to_end($watch)], ['ready w', 'end'], 'the end';
is $watch->{events}[-1]{reason}, 'timeout', 'by the clock';
ok $watch->{whole}, 'the body is whole';
mkdir "$base/gone";
AbxServer::spew("$base/gone/$_", '') for qw(a b);
$watch = watch('path=gone');
named($watch, 'ready');
rename "$base/gone", "$base/away";
is_deeply [to_end($watch)], ['ready gone', 'deleted gone/a', 'deleted gone/b', 'end'], 'the watched directory goes';
is $watch->{events}[-1]{reason}, 'deleted', 'which is told';
ok $watch->{whole}, 'the body is whole';

# More than can be tracked.
mkdir "$base/full";
for my $i (1 .. 5001) {
	symlink 'x', sprintf '%s/full/%05d', $base, $i;
}
$watch = watch('path=full');
is named($watch, 'ready')->{entries}, 5000, 'five thousand are tracked';
is_deeply named($watch, 'overflow'), { name => 'overflow', limit => 5000 }, 'and more are told of';
symlink 'x', "$base/full/00000";
unlink "$base/full/00007";
ok named($watch, 'created', 'full/00000'), 'where one goes another has room';
ok named($watch, 'deleted', 'full/00007'), 'the one';
is scalar(grep { $_->{name} eq 'overflow' } @{ $watch->{events} }), 1, 'overflow is told once';
close $watch->{socket};

# Wrong calls.
sub is_refused {
	my ($query, $status, $type, $code, $name) = @_;
	my $answer = $server->get("/files/watch?$query");

	is_deeply [$answer->{status}, @{ $answer->{json} }{qw(type code)}], [$status, $type, $code], "$name: $status $type";
}
is_refused('path=nope', 404, 'FileNotFoundError', undef, 'nothing there');
is_refused('path=w/seen', 404, 'FileNotFoundError', undef, 'a file');
is_refused('path=..', 403, 'PermissionError', 'path_not_allowed', 'outside');
is_refused('', 400, 'ValueError', undef, 'no path');
is_refused("path=w&$_", 400, 'ValueError', undef, $_) for 'interval=x', 'timeout=x', 'interval=', 'timeout=nan', 'interval=inf', 'timeout=0x1', 'timeout=1e400';
is_refused('path=w&path=w', 400, 'ValueError', 'duplicate_parameter', 'two paths');

# Extremes of the times are taken to what is possible.
$watch = watch('path=w&timeout=-5&interval=1e9');
is_deeply [to_end($watch)], ['ready w', 'end'], 'a timeout below the least is the least';

# A client that leaves frees what it had.
my $responder = $server->responder('file_ops');
my @watches = map { watch('path=w&recursive=1') } 1 .. 20;
named($_, 'ready') for @watches;
my $inotify = sub { scalar grep { (readlink || '') =~ /inotify/ } glob "/proc/$responder/fd/*" };
cmp_ok $inotify->(), '>=', 20, 'twenty watches';
close $_->{socket} for @watches;
ok AbxServer::wait_for(sub { $inotify->() == 0 }), 'all are freed when their clients leave';

# Calls that last do not keep others from a thread.
mkdir "$base/crowd";
@watches = map { watch('path=crowd') } 1 .. 192;
named($_, 'ready') for @watches;
is_refused('path=crowd', 429, 'ResourceError', undef, 'one watch too many');
is $server->get('/files/stat?path=w')->{status}, 200, 'what is quick goes on';
# There may be fewer alarm clocks than watches: the others look in turns.
AbxServer::spew("$base/crowd/file", '');
is scalar(grep { named($_, 'created', 'crowd/file') } @watches), 192, 'all see a change';
close $_->{socket} for @watches;
ok AbxServer::wait_for(sub { my $again = watch('path=crowd&timeout=0.1'); return (to_end($again))[0] eq 'ready crowd' }), 'and later on there is room again';

# A server that stops says so.
$watch = watch('path=w');
named($watch, 'ready');
$server->stop;
is_deeply [to_end($watch)], ['ready w', 'error'], 'the server stops';
is $watch->{events}[-1]{type}, 'RuntimeError', 'which is told';

done_testing;
