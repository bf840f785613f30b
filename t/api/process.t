# /process/*: background processes.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use AbxServer;
use Digest::SHA;
use MIME::Base64;
use Test::More;
use Time::HiRes qw(time);

my $server = AbxServer->start(env => { ABX_SERVER_TOKEN => 'a-secret-token', OUTER => 'kept' }, token => 'a-secret-token');
my $base = $server->base;
my ($true, $false) = (JSON::PP::true, JSON::PP::false);

sub start {
	my ($command, %more) = @_;
	my $answer = $server->post('/process/start', { command => $command, %more });

	diag($answer->{content}) unless $answer->{status} == 200;
	return $answer->{json}{pid};
}

sub state_of {
	my ($pid) = @_;

	return $server->get("/process/$pid")->{json};
}

# Wait for its end. Returns the exit code.
sub ended {
	my ($pid) = @_;

	return AbxServer::wait_for(sub { state_of($pid)->{state} eq 'exited' }) ? state_of($pid)->{exit_code} : undef;
}

sub output {
	my ($pid, $since, $wait) = @_;

	return $server->get("/process/$pid/output?since=" . ($since || 0) . '&wait=' . ($wait || 0))->{json};
}

sub is_refused {
	my ($answer, $status, $type, $message, $name) = @_;

	is $answer->{status}, $status, "$name: $status";
	is $answer->{json}{type}, $type, "$name: $type";
	like $answer->{json}{error}, $message, "$name: message";
	ok !exists $answer->{json}{code}, "$name: no code" unless $status == 403;
}

# ---- start, list, get

my $before = time;
my $answer = $server->post('/process/start', { command => q{sleep  "1000"} });
is $answer->{status}, 200, 'a process is started';
my $pid = $answer->{json}{pid};
is_deeply $answer->{json}, { pid => $pid, command => q{sleep  "1000"} }, 'the answer names its pid, and the command as it was written';
is AbxServer::slurp("/proc/$pid/cmdline"), "sleep\0" . "1000\0", 'it is there';
my $state = state_of($pid);
is_deeply [sort keys %$state], [qw(command exit_code pid started_at state)], 'its state';
is $state->{state}, 'running', 'it runs';
is $state->{exit_code}, undef, 'it has no exit code yet';
ok $state->{started_at} >= $before - 1 && $state->{started_at} <= time + 1, 'the time of its start';
my $list = $server->get('/process/list')->{json};
is_deeply $list, { processes => [{ pid => $pid, command => q{sleep  "1000"}, state => 'running', started_at => $state->{started_at} }] }, 'the list';
my $second = start('sleep 1000');
is_deeply [map { $_->{pid} } @{ $server->get('/process/list')->{json}{processes} }], [$pid, $second], 'in the order of their starts';
is $server->post("/process/$_/signal", { signal => 9 })->{status}, 200, 'killed' for $pid, $second;
is_deeply $server->get('/process/list')->{json}, { processes => [] }, 'ended ones are not listed';
is_deeply state_of($pid), { %$state, state => 'exited', exit_code => -9 }, 'but kept';
is ended(start(q{bash -c 'exit 7'})), 7, 'an exit code';
is ended(start(q{bash -c 'kill -15 $$'})), -15, 'a signal';
is ended(start('true', timeout => 100)), 0, 'success';

mkdir "$base/sub";
$pid = start(q{bash -c 'pwd; echo $A$OUTER$ABX_SERVER_TOKEN; readlink /proc/self/fd/0'}, cwd => 'sub', env => { A => '1' }, capture_output => $true);
ended($pid);
is join('', map { $_->{data} } @{ output($pid)->{events} }), "$base/sub\n1kept\n/dev/null\n", 'cwd, env, no variable of the server, standard input';
$pid = start('sleep 1000');
# (Its loader has the libraries open for a moment.)
ok AbxServer::wait_for(sub { AbxServer::program_name($pid) eq 'sleep' && join(' ', sort map { m{(\d+)\z} } glob "/proc/$pid/fd/*") eq '0 1 2' }),
	'a process has three descriptors and no more';
is_deeply [map { readlink "/proc/$pid/fd/$_" } 0 .. 2], [('/dev/null') x 3], 'what is not asked for is /dev/null';
$server->post("/process/$pid/signal", { signal => 9 });
is ended(start('sleep 1000', timeout => 0.3)), -9, 'a timeout kills';

is_refused($server->post('/process/start', {}), 400, 'ValueError', qr/\Acommand: is required\z/, 'no command');
is_refused($server->post('/process/start', { command => ' ' }), 400, 'ValueError', qr/blank/, 'a blank command');
is_refused($server->post('/process/start', { command => 'echo "' }), 400, 'ValueError', qr/\ANo closing quotation\z/, 'an open quote');
is_refused($server->post('/process/start', { command => 'no-such-program' }), 500, 'FileNotFoundError', qr/no-such-program/, 'a missing program');
is_refused($server->post('/process/start', { command => 'true', cwd => '/etc' }), 403, 'PermissionError', qr/cwd/, 'cwd outside');
is_refused($server->post('/process/start', { command => 'true', env => { ABX_A => '' } }), 403, 'PermissionError', qr/ABX_/, 'a variable of the server');
is_refused($server->post('/process/start', { command => 'true', $_ => 'yes' }), 400, 'ValueError', qr/\A$_: must be a boolean/, "$_: a string") for qw(capture_output stdin);
is_deeply $server->get('/process/list')->{json}, { processes => [] }, 'what was refused left no row';

for my $path ('', '/output', '/signal', '/stdin') {
	my $body = $path eq '/signal' ? { signal => 15 } : $path eq '/stdin' ? { eof => $true } : undef;
	my $ask = sub { $body ? $server->post("/process/$_[0]$path", $body) : $server->get("/process/$_[0]$path") };

	is_refused($ask->($_), 400, 'ValueError', qr/\Apid: must be an integer\z/, "pid $_$path") for 'x', '1x', '1.0', '-', '%20';
	is_refused($ask->($_), 404, 'ProcessLookupError', qr/\ANo such process: $_\z/, "pid $_$path") for 999999999, '99999999999999999999', 0, -5;
}
is_refused($server->get("/process/$$"), 404, 'ProcessLookupError', qr/\ANo such process/, 'a process of somebody else');

# ---- signals

$pid = start(q{bash -c 'trap "echo int" INT; trap "echo term; exit 5" TERM; echo ready; while :; do sleep 0.05; done'}, capture_output => $true);
is output($pid, 0, 30)->{events}[0]{data}, "ready\n", 'a process that handles signals';
is_deeply $server->post("/process/$pid/signal", { signal => 2 })->{json}, { pid => $pid, signal => 2 }, 'SIGINT';
is output($pid, 1, 30)->{events}[0]{data}, "int\n", 'arrives';
my $stopped = sub { (AbxServer::slurp("/proc/$pid/stat") || '') =~ /\) T / };
is $server->post("/process/$pid/signal", { signal => 20 })->{status}, 200, 'SIGTSTP';
ok AbxServer::wait_for($stopped), 'stops it';
is state_of($pid)->{state}, 'running', 'which is no end';
is $server->post("/process/$pid/signal", { signal => 18 })->{status}, 200, 'SIGCONT';
ok AbxServer::wait_for(sub { !$stopped->() }), 'lets it go on';
is $server->post("/process/$pid/signal", { signal => 15 })->{status}, 200, 'SIGTERM';
is ended($pid), 5, 'lets it end as it likes';
is_refused($server->post("/process/$pid/signal", { signal => $_ }), 404, 'ProcessLookupError', qr/has ended/, "$_ to an ended process") for 15, 9;
is_refused($server->post("/process/$pid/signal", { signal => $_ }), 400, 'ValueError', qr/\Asignal: /, "signal $_") for 0, 1, 3, 10, 19, -9, 64, 'TERM', 9.5;
is_refused($server->post("/process/$pid/signal", {}), 400, 'ValueError', qr/\Asignal: is required/, 'no signal');
is_refused($server->post('/process/1/signal', { signal => 15 }), 403, 'PermissionError', qr/server/, 'pid 1');
is_refused($server->post("/process/$_/signal", { signal => 9 }), 403, 'PermissionError', qr/server/, AbxServer::program_name($_))
	for $server->pid, AbxServer::children_of($server->pid);

# The others reach the process alone, 9 everything below it, wherever it went.
$pid = start(q{bash -c 'sleep 1000 & echo $!; setsid sleep 1000 & echo $!; setsid bash -c "sleep 1000 & echo \$!; exec sleep 1000" & echo $!; wait'}, capture_output => $true);
my @children;
AbxServer::wait_for(sub { (@children = map { split ' ', $_->{data} } @{ output($pid)->{events} }) == 4 });
is scalar(grep { AbxServer::is_alive($_) } @children), 4, 'a tree of processes';
$server->post("/process/$pid/signal", { signal => 9 });
is scalar(grep { AbxServer::is_alive($_) } @children), 0, 'is gone when its killing is answered';
is state_of($pid)->{exit_code}, -9, 'so is its root';
$pid = start(q{bash -c 'sleep 1000 & echo $!; exec sleep 1000'}, capture_output => $true);
my ($child) = split ' ', output($pid, 0, 30)->{events}[0]{data};
$server->post("/process/$pid/signal", { signal => 15 });
is ended($pid), -15, 'SIGTERM ends the process';
ok AbxServer::is_alive($child), 'and leaves its children alone';
kill 'KILL', $child;

# ---- output

is_refused($server->get("/process/$second/output"), 409, 'ValueError', qr/not captured/, 'output that is not captured');
$pid = start(q{bash -c 'echo one; read; echo two >&2; read; printf "caf\xc3"; read; printf "\xa9\xff"; read; exit 4'}, capture_output => $true, stdin => $true);
my $go = sub { $server->post("/process/$pid/stdin", { data => "\n" }) };
is_deeply output($pid, 0, 30), { pid => $pid, events => [{ seq => 0, stream => 'stdout', data => "one\n" }], next => 1, state => 'running',
	exit_code => undef, dropped => $false }, 'the first output';
is_deeply output($pid, 1), { pid => $pid, events => [], next => 1, state => 'running', exit_code => undef, dropped => $false }, 'no more yet';
$go->();
is_deeply output($pid, 1, 30)->{events}, [{ seq => 1, stream => 'stderr', data => "two\n" }], 'the second, waited for';
$go->();
is_deeply output($pid, 2, 30)->{events}, [{ seq => 2, stream => 'stdout', data => 'caf' }], 'a character that is not there yet';
$go->();
is_deeply output($pid, 3, 30)->{events}, [{ seq => 3, stream => 'stdout', data => "\x{e9}\x{fffd}" }], 'comes whole';
is scalar @{ output($pid)->{events} }, 4, 'all of it can be had again';
is scalar @{ output($pid, -3)->{events} }, 4, 'from below zero, too';
is_deeply output($pid, 1000)->{events}, [], 'nothing is there in the future';
$go->();
$answer = output($pid, 4, 30);
is_deeply [@$answer{qw(events state exit_code next)}], [[], 'exited', 4, 4], 'the end is news as well';
is scalar @{ output($pid)->{events} }, 4, 'the output of an ended process is kept';
is $server->get("/process/$pid/output?$_")->{status}, 400, "$_: 400" for 'since=x', 'since=1.5', 'wait=soon', 'wait=nan';
is output($pid, 4, -1)->{state}, 'exited', 'a negative wait is none';

# Waiting costs no time when there is something, and takes no longer than was asked for.
$pid = start('sleep 1000', capture_output => $true);
$answer = output($pid, 0, 0.2);
is_deeply [@$answer{qw(events state)}], [[], 'running'], 'a wait for nothing ends';
$server->post("/process/$pid/signal", { signal => 9 });

# More than is kept.
$pid = start(q{bash -c 'head -c 5000000 /dev/zero | tr "\0" x; echo; echo end'}, capture_output => $true);
ended($pid);
$answer = output($pid);
my @events = @{ $answer->{events} };
is $answer->{dropped}, $true, 'output that was dropped is told';
my $size = 0;
$size += length $_->{data} for @events;
ok $size <= 1 << 20, "no more than 1 MiB is kept ($size)";
cmp_ok $size, '>', 900 << 10, 'and hardly less';
is_deeply [map { $_->{seq} } @events], [$events[0]{seq} .. $answer->{next} - 1], 'the numbers have no gap';
like $events[-1]{data}, qr/end\n\z/, 'the end is there';
is output($pid, $events[0]{seq})->{dropped}, $false, 'nothing after the oldest that is kept is gone';
is output($pid, $events[0]{seq} - 1)->{dropped}, $true, 'the one before it is';
$pid = start(q{bash -c 'printf x; sleep 1000 & echo $!'}, capture_output => $true);
is ended($pid), 0, 'a descendant that holds the pipe does not hold up the end';
my $text = join '', map { $_->{data} } @{ output($pid)->{events} };
like $text, qr/\Ax\d+\n\z/, 'nothing of what was written before is lost';
kill 'KILL', $text =~ /(\d+)/;

# ---- standard input

is_refused($server->post("/process/$second/stdin", { data => 'x' }), 409, 'ValueError', qr/without standard input/, 'no standard input');
$pid = start(q{bash -c 'sha256sum; echo done'}, capture_output => $true, stdin => $true);
is_deeply $server->post("/process/$pid/stdin", { data => "caf\x{e9}\0\n" })->{json}, { pid => $pid, written => 7, closed => $false }, 'text is written as UTF-8';
is $server->post("/process/$pid/stdin", { data_base64 => encode_base64("\xff\0\x80", '') })->{json}{written}, 3, 'bytes as base64';
is $server->post("/process/$pid/stdin", { data => '' })->{json}{written}, 0, 'an empty text';
is_refused($server->post("/process/$pid/stdin", {}), 400, 'ValueError', qr/required/, 'nothing');
is_refused($server->post("/process/$pid/stdin", { eof => $false }), 400, 'ValueError', qr/required/, 'no eof');
is_refused($server->post("/process/$pid/stdin", { data => 'a', data_base64 => 'YQ==' }), 400, 'ValueError', qr/either/, 'both');
is_refused($server->post("/process/$pid/stdin", { data => 5 }), 400, 'ValueError', qr/\Adata: must be a string/, 'a number');
is_refused($server->post("/process/$pid/stdin", { data_base64 => 'a*b' }), 400, 'ValueError', qr/\Adata_base64: /, 'bad base64');
is_deeply $server->post("/process/$pid/stdin", { data => 'last', eof => $true })->{json}, { pid => $pid, written => 4, closed => $true }, 'the last of it';
is_refused($server->post("/process/$pid/stdin", { data => 'x' }), 409, 'ValueError', qr/closed/, 'more');
is ended($pid), 0, 'the process sees the end';
is join('', map { $_->{data} } @{ output($pid)->{events} }), Digest::SHA::sha256_hex("caf\xc3\xa9\0\n\xff\0\x80last") . "  -\ndone\n", 'it got every byte in order';
is_refused($server->post("/process/$pid/stdin", { eof => $true }), 409, 'ValueError', qr/closed/, 'to an ended process');

# As much as a body has room for, to a slow reader.
$pid = start(q{bash -c 'sleep 0.5; wc -c'}, capture_output => $true, stdin => $true);
is $server->post("/process/$pid/stdin", { data => 'x' x 10_000_000 })->{json}{written}, 10_000_000, 'ten million bytes to a process that begins to read late';
$server->post("/process/$pid/stdin", { eof => $true });
is output($pid, 0, 30)->{events}[0]{data}, "10000000\n", 'have arrived';

# A process that never reads: what has gone into its pipe is told, and what did not fit is not counted.
$pid = start('sleep 1000', stdin => $true);
my $first = $server->post("/process/$pid/stdin", { data => 'x' x 3_000_000 })->{json};
ok $first->{written} >= 65536 && $first->{written} < 3_000_000, "a process that does not read gets as much as its pipe holds ($first->{written})";
ok !$first->{closed}, 'it stays open';
is $server->get("/process/$pid")->{json}{state}, 'running', 'others go on meanwhile';
$server->post("/process/$pid/signal", { signal => 9 });
$pid = start(q{bash -c 'exec <&-; echo closed; sleep 1000'}, stdin => $true, capture_output => $true);
output($pid, 0, 30);
is_refused($server->post("/process/$pid/stdin", { data => 'x' }), 409, 'ValueError', qr/closed/, 'to a process that closed it');
$server->post("/process/$pid/signal", { signal => 9 });

# ---- the table

my (@pids, $full);
for (1 .. 100) {
	push @pids, start('sleep 1000');
}
$full = $server->post('/process/start', { command => 'true' });
is_refused($full, 429, 'ResourceError', qr/\AToo many running processes/, 'the 101st');
is scalar @{ $server->get('/process/list')->{json}{processes} }, 100, 'a hundred are listed';
is $server->post('/shell', { command => 'echo still here' })->{json}{stdout}, "still here\n", 'commands run all the same';
kill 'KILL', $pids[0];
AbxServer::wait_for(sub { !AbxServer::is_alive($pids[0]) });
ok start('sleep 1000'), 'where one has ended there is room';
is state_of($pids[0])->{exit_code}, -9, 'the ended one is kept';

# ---- clients that leave, and the end

$server->post("/process/$pids[1]/signal", { signal => 9 });
$pid = start('sleep 1000', capture_output => $true);
my ($responder) = $server->responder('process');
my $waiters = sub { scalar grep { (readlink($_) || '') =~ /eventfd/ } glob "/proc/$responder/fd/*" };
my $idle = $waiters->();
my $socket = $server->connect;
print $socket "GET /process/$pid/output?wait=30 HTTP/1.1\r\nHost: x\r\nX-Access-Token: a-secret-token\r\n\r\n";
$socket->flush;
ok AbxServer::wait_for(sub { $waiters->() > $idle }), 'a request waits';
close $socket;
ok AbxServer::wait_for(sub { $waiters->() == $idle }, 20), 'and is let go when its client leaves';

$socket = $server->connect;
print $socket "GET /process/$pid/output?wait=30 HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Access-Token: a-secret-token\r\n\r\n";
$socket->flush;
AbxServer::wait_for(sub { $waiters->() > $idle });
my @all = map { $_->{pid} } @{ $server->get('/process/list')->{json}{processes} };
kill 'TERM', $server->pid;
like AbxServer::parse_response(AbxServer::read_until($socket))->{content}, qr/"state": "(?:running|exited)".*\}\z/, 'who waits when the server stops is told what there is';
is $server->stop, 0, 'the server ends';
is scalar(grep { AbxServer::is_alive($_) } @all), 0, 'and every process that it had started';
done_testing;
