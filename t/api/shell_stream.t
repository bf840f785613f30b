# POST /shell/stream. ABX_TEST_LONG=1: with a silence that is long enough for a comment line, and 400 MB for a client that does not read.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use AbxServer;
use Test::More;
use Time::HiRes ();

my $LONG = $ENV{ABX_TEST_LONG};
my $server = AbxServer->start(env => { ABX_SERVER_TOKEN => 'a-secret-token' }, token => 'a-secret-token');
my $base = $server->base;

# The events of a stream, as [name, data].
sub events {
	my ($text) = @_;

	return map { /\Aevent: (\w+)\ndata: (.*)\z/s ? [$1, AbxServer::decode_json($2)] : [$_] } split /\n\n/, $text;
}

sub stream {
	my ($command, %more) = @_;
	my $answer = $server->post('/shell/stream', { command => $command, %more });

	$answer->{events} = [events($answer->{content})];
	return $answer;
}

# As one string: "out:a err:b exit:0".
sub story {
	my ($answer) = @_;

	return join ' ', map {
		my ($name, $data) = @$_;
		($name =~ s/\Astd//r) . ':' . (ref $data ? defined $data->{data} ? $data->{data} : defined $data->{exit_code} ? $data->{exit_code} : $data->{type} : '?');
	} @{ $answer->{events} };
}

# A stream that is read by hand: the socket, after the request was sent.
sub open_stream {
	my (%body) = @_;
	my $socket = $server->connect;
	my $body = AbxServer::encode_json(\%body);

	print $socket "POST /shell/stream HTTP/1.1\r\nHost: x\r\nX-Access-Token: a-secret-token\r\nConnection: close\r\n",
		"Content-Length: ${\ length $body}\r\n\r\n$body";
	$socket->flush;
	return $socket;
}

# The numbers that a file gets to hold, a line each, when there are so many.
sub pids_in {
	my ($name, $n) = @_;

	AbxServer::wait_for(sub { ((AbxServer::slurp("$base/$name") || '') =~ tr/\n//) >= $n });
	return split ' ', AbxServer::slurp("$base/$name");
}

sub all_dead {
	my (@pids) = @_;

	return AbxServer::wait_for(sub { !grep { AbxServer::is_alive($_) } @pids });
}

# ---- lines

my $answer = stream(q{bash -c 'echo one; sleep 0.1; echo two >&2; sleep 0.1; echo three'});
is $answer->{status}, 200, 'a stream';
is story($answer), 'out:one err:two out:three exit:0', 'lines in their order, each on its stream';
is $answer->{headers}{'content-type'}, 'text/event-stream', 'its type';
is $answer->{headers}{'x-accel-buffering'}, 'no', 'not to be buffered';
is $answer->{headers}{'cache-control'}, 'no-store', 'nor stored';
is $answer->{content}, qq{event: stdout\ndata: {"data": "one"}\n\nevent: stderr\ndata: {"data": "two"}\n\n}
	. qq{event: stdout\ndata: {"data": "three"}\n\nevent: exit\ndata: {"exit_code": 0}\n\n}, 'to the letter';
is story(stream(q{printf 'a\n\nb\r\n c \nend'})), "out:a out: out:b\r out: c  out:end exit:0", 'empty lines, blanks, a last one without newline';
is story(stream('true')), 'exit:0', 'no output';
is story(stream(q{bash -c 'exit 7'})), 'exit:7', 'an exit code';
is story(stream(q{bash -c 'echo x; kill -15 $$'})), 'out:x exit:-15', 'a signal';
is story(stream('pwd')), "out:$base exit:0", 'the base directory';
mkdir "$base/sub";
is story(stream(q{bash -c 'echo $A; pwd'}, env => { A => 'b' }, cwd => 'sub')), "out:b out:$base/sub exit:0", 'env and cwd';
is story(stream('cat')), 'exit:0', 'standard input is empty';
unlike stream('env')->{content}, qr/ABX_|a-secret-token/, 'no variable of the server';
is story(stream(q{bash -c 'printf "caf\xc3"; sleep 0.1; printf "\xa9\n\xff\n"'})), "out:caf\x{e9} out:\x{fffd} exit:0", 'a character in two pieces';

my @long = stream(q{bash -c 'head -c 2621441 /dev/zero | tr "\0" x; echo; head -c 1048576 /dev/zero | tr "\0" y; echo; echo z'})->{content} =~ /"(x+|y+|z)"/g;
is_deeply [map { length } @long], [1048576, 1048576, 524289, 1048576, 1], 'lines of megabytes come in pieces of one';

# ---- ends

is story(stream(q{bash -c 'echo so far; printf part; sleep 1000'}, timeout => 0.5)), 'out:so far out:part error:TimeoutError', 'a timeout';
is stream('sleep 1000', timeout => 0.5)->{events}[0][1]{error}, 'Command timed out after 0.5s', 'its message';
is story(stream(q{bash -c 'sleep 1000 & echo started'})), 'out:started exit:0', 'a descendant that holds the pipe does not hold the stream';
$answer = stream(q{bash -c 'sleep 1000 & echo $!; setsid sleep 1000 & echo $!; wait'}, timeout => 0.5);
my @left = map { $_->[1]{data} } grep { $_->[0] eq 'stdout' } @{ $answer->{events} };
ok @left == 2 && all_dead(@left), 'a timeout ends descendants, in whatever session';

# ---- refused before a stream begins

sub is_refused {
	my ($refused, $status, $type, $message, $name) = @_;

	is $refused->{status}, $status, "$name: $status";
	is $refused->{headers}{'content-type'}, 'application/json; charset=utf-8', "$name: JSON";
	is $refused->{json}{type}, $type, "$name: $type";
	like $refused->{json}{error}, $message, "$name: message";
}

is_refused(stream('no-such-program x'), 500, 'FileNotFoundError', qr/no-such-program/, 'a missing program');
is_refused(stream('/etc/passwd'), 500, 'PermissionError', qr/passwd/, 'a file that is no program');
is_refused(stream('echo "x'), 400, 'ValueError', qr/\ANo closing quotation\z/, 'an open quote');
is_refused(stream("\t "), 400, 'ValueError', qr/blank/, 'a blank command');
is_refused($server->post('/shell/stream', {}), 400, 'ValueError', qr/\Acommand: is required\z/, 'no command');
is_refused(stream('true', cwd => '/etc'), 403, 'PermissionError', qr/cwd/, 'cwd outside');
is_refused(stream('true', env => { ABX_X => '1' }), 403, 'PermissionError', qr/ABX_/, 'a variable of the server');

# ---- the client

my $socket = open_stream(command => q{bash -c 'echo $$ >leave; sleep 1000 & echo $! >>leave; setsid sleep 1000 & echo $! >>leave; echo go; wait'});
like AbxServer::read_until($socket, sub { $_[0] =~ /"go"/ }), qr/"go"/, 'an event comes while the command runs';
my @pids = pids_in('leave', 3);
close $socket;
ok all_dead(@pids), 'a client that leaves takes the command and its descendants along';

$socket = open_stream(command => q{bash -c 'echo $$ >half; sleep 1000'});
@pids = pids_in('half', 1);
shutdown $socket, 1;
ok all_dead(@pids), 'one that closes its half counts as gone';
close $socket;

# It reads nothing: what was written stays in a few buffers, and the command waits.
my $lines = $LONG ? 4_000_000 : 400_000;
unlink "$base/written";
$socket = open_stream(command => qq{bash -c 'yes ${\ ("x" x 99)} | head -n $lines; : >written'});
my ($responder, $lighttpd) = ($server->responder('process'), $server->lighttpd);
Time::HiRes::sleep($LONG ? 10 : 2);
ok !-e "$base/written", 'a command whose client does not read is held back';
for my $pid ($responder, $lighttpd) {
	my ($kib) = AbxServer::slurp("/proc/$pid/status") =~ /^VmRSS:\s+(\d+)/m;
	cmp_ok $kib, '<', 16 << 10, AbxServer::program_name($pid) . " holds little memory ($kib KiB)" unless AbxServer::sanitized();
}
my $spooled = 0;
$spooled += -s $_ || 0 for glob "$server->{spool}/*";
cmp_ok $spooled, '<', 1 << 20, 'nothing waits on disk';
my ($got, $tail) = (0, '');
while (sysread $socket, my $piece, 1 << 20) {
	$got += $piece =~ tr/\n//;
	$tail = substr $tail . $piece, -200;
}
ok -e "$base/written", 'and goes on when it reads';
# Each event has three newlines; the chunks of the transfer add theirs.
cmp_ok $got, '>=', 3 * $lines, 'every line has come';
like $tail, qr/event: exit\ndata: \{"exit_code": 0\}/, 'and the end';

# A stalled client does not keep a command from its timeout.
my @stalled = map { open_stream(command => qq{bash -c 'echo \$\$ >stalled$_; yes'}, timeout => 1) } 1 .. 6;
ok all_dead(map { pids_in("stalled$_", 1) } 1 .. 6), 'the timeouts of commands whose clients do not read';
$socket = $stalled[0];
$tail = '';
while (sysread $socket, my $piece, 1 << 20) {
	$tail = substr $tail . $piece, -300;
}
like $tail, qr/event: error\ndata: \{"error": "Command timed out after 1s", "type": "TimeoutError"\}\n\n\r\n0\r\n\r\n\z/, 'is told when it reads at last';

SKIP: {
	skip 'ABX_TEST_LONG is not set', 1 unless $LONG;
	is stream('sleep 16')->{content}, qq{: keep-alive\n\nevent: exit\ndata: {"exit_code": 0}\n\n}, 'silence is broken by a comment line';
}

# ---- the end of the server

ok AbxServer::wait_for(sub { !AbxServer::children_of($responder) }), 'no child is left, and none as a zombie';
$socket = open_stream(command => q{bash -c 'echo $$ >stop; setsid sleep 1000 & echo $! >>stop; echo go; wait'});
AbxServer::read_until($socket, sub { $_[0] =~ /"go"/ });
@pids = pids_in('stop', 2);
kill 'TERM', $server->pid;
like AbxServer::read_until($socket), qr/event: error\ndata: \{"error": "The server is stopping", "type": "RuntimeError"\}\n\n\r\n0\r\n\r\n\z/,
	'a stream of a server that stops is ended in good order';
is $server->stop, 0, 'the server ends';
ok !(grep { AbxServer::is_alive($_) } @pids), 'and nothing of the command is left';

done_testing;
