# Confinement by a policy, on every endpoint that starts commands.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use AbxServer;
use AbxWebSocket;
use File::Copy;
use IO::Socket::INET;
use Test::More;

my $outside = AbxServer::temp_dir();
my %whole = (confine => { filesystem => JSON::PP::true, network => JSON::PP::false, no_new_privs => JSON::PP::true });

# A server with a policy that confines all commands.
sub server {
	my (%more) = @_;
	my $server = AbxServer->prepare(%more, env => { PATH => '/usr/local/bin:/usr/bin:/bin' });
	my %endpoints = map { $_ => { %whole } } qw(shell shell_stream process_start code_run pty_create);

	$endpoints{shell}{paths} = { allow => [$server->base, "$outside/*"] } if $more{globs};
	$server->{env}{ABX_SERVER_POLICY} = AbxServer::encode_json({ version => 1, groups => ['dev_tools'], endpoints => \%endpoints });
	return $server->launch;
}

sub run {
	my ($server, $script, %more) = @_;

	return $server->post('/shell', { command => "bash -c '$script'", %more })->{json};
}

# What is left of temporary directories.
sub temps {
	my ($server) = @_;

	return scalar(() = glob "$server->{spool}/work-*");
}

my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 50) or die $!;
my $port = $listener->sockport;
AbxServer::spew("$outside/secret", "secret\n", 0666);

sub test_server {
	my ($name, %more) = @_;
	my $server = server(%more);
	my $base = $server->base;
	my $try = "echo in >file; cat $outside/secret; : 2>/dev/null >/dev/tcp/127.0.0.1/$port && echo connected; grep NoNewPrivs /proc/self/status";
	my $told = "NoNewPrivs:\t1\n";

	AbxServer::spew("$base/try", "$try\n", 0644);
	my $answer = run($server, $try);
	is $answer->{stdout}, $told, "$name: shell";
	like $answer->{stderr}, qr/secret: Permission denied/, "$name: what is outside is not there";
	is AbxServer::slurp("$base/file"), "in\n", "$name: the base directory is";
	is $server->post('/commands/runshell', { cmd => 'bash try' })->{json}{result}{stdout}, $told, "$name: runshell";
	like $server->post('/shell/stream', { command => 'bash try' })->{content}, qr/\A(?:event: stderr\ndata: .*\n\n)*event: stdout\ndata: \{"data": "NoNewPrivs:\\t1"\}\n\n(?:event: stderr\ndata: .*\n\n)*event: exit/,
		"$name: shell_stream";
	my $pid = $server->post('/process/start', { command => 'bash try', capture_output => JSON::PP::true })->{json}{pid};
	AbxServer::wait_for(sub { $server->get("/process/$pid")->{json}{state} eq 'exited' });
	is join('', map { $_->{stream} eq 'stdout' ? $_->{data} : () } @{ $server->get("/process/$pid/output")->{json}{events} }), $told, "$name: process_start";
	is $server->post('/code/run', { language => 'bash', code => $try })->{json}{stdout}, $told, "$name: code_run";

	# A terminal.
	my $id = AbxWebSocket::new_session($server, shell => '/bin/bash', cols => 93, rows => 31);
	my $ws = AbxWebSocket->connect(port => AbxWebSocket::pty_port($server), path => "/pty?session_id=$id");
	$ws->type("bash try; stty size; echo TMPDIR=\$TMPDIR; echo x >\$TMPDIR/file; sleep 1000 & jobs; echo do\"\"ne\n");
	my $shown = $ws->expect(qr/done/);
	like $shown, qr/secret: Permission denied.*NoNewPrivs:\t1.*31 93.*Running/s, "$name: a terminal, with its size and its jobs";
	unlike $shown, qr/connected/, "$name: without network";
	my ($own) = $shown =~ m{TMPDIR=(\Q$server->{spool}\E/work-\S+)};
	ok defined $own && -e "$own/file", "$name: its own directory";
	is $server->delete("/pty/sessions/$id")->{status}, 200, "$name: it is closed";
	ok AbxServer::wait_for(sub { temps($server) == 0 }), "$name: which takes the directory with it";

	# A place of its own.
	$answer = run($server, 'echo $TMPDIR; echo x >$TMPDIR/file; mkdir -p $TMPDIR/a/b; mktemp; ls -d $TMPDIR/..');
	my ($temp, $made) = split /\n/, $answer->{stdout};
	like $temp, qr/\A\Q$server->{spool}\E\/work-/, "$name: TMPDIR";
	like $made, qr/\A\Q$temp\E\//, "$name: is where temporary files are made";
	ok !-e $temp, "$name: and goes with the command, whatever is in it";
	is run($server, 'echo $TMPDIR', env => { TMPDIR => "$base/mine" })->{stdout}, "$base/mine\n", "$name: a caller may name another";
	isnt run($server, "ls $server->{spool}")->{exit_code}, 0, "$name: those of others are not there";
	$pid = $server->post('/process/start', { command => 'bash -c "mkdir -p $TMPDIR/a/b; echo $TMPDIR; sleep 1000"', capture_output => JSON::PP::true })->{json}{pid};
	$temp = $server->get("/process/$pid/output?wait=30")->{json}{events}[0]{data};
	chomp $temp;
	ok -d "$temp/a/b", "$name: a background process has one for as long as it runs";
	$server->post("/process/$pid/signal", { signal => 9 });
	ok AbxServer::wait_for(sub { !-e $temp }), "$name: and no longer";
	ok AbxServer::wait_for(sub { temps($server) == 0 }), "$name: none is left";

	# Ends as of any other command.
	is $server->post('/shell', { command => 'no-such-program' })->{json}{type}, 'FileNotFoundError', "$name: a missing program";
	is run($server, 'sleep 1000 & setsid sleep 1000 & wait', timeout => 0.5)->{type}, 'TimeoutError', "$name: a timeout";
	is run($server, 'exit 7')->{exit_code}, 7, "$name: an exit code";
	is temps($server), 0, "$name: no temporary directory is left by any of them";
	ok AbxServer::wait_for(sub { !AbxServer::children_of($server->responder('process')) }), "$name: and no child";
	return $server;
}

my $server = test_server($> == 0 ? 'root' : 'ordinary user');
isnt $server->post('/shell', { command => "perl -MIO::Socket::INET -e 'exit !IO::Socket::INET->new(q(127.0.0.1:${\ $server->port}))'" })->{json}{exit_code}, 0,
	'the server itself is not reached';
# Directories that a dead responder has left go when the next one comes.
my ($responder) = $server->responder('process');
my $pid = $server->post('/process/start', { command => 'sleep 1000' })->{json}{pid};
is temps($server), 1, 'a temporary directory';
kill 'KILL', $responder;
ok AbxServer::wait_for(sub { temps($server) == 0 }), 'of a responder that died is swept away';
$server->stop;
test_server('nobody', ordinary => 1) if $> == 0;

# Limits, and a fork bomb that runs into one.
sub limited {
	my ($limits, %more) = @_;
	my $limited = AbxServer->prepare(%more, env => { PATH => '/usr/local/bin:/usr/bin:/bin' });

	$limited->{env}{ABX_SERVER_POLICY} = AbxServer::encode_json({ version => 1, endpoints => { map { $_ => { confine => $limits } } qw(shell pty_create) } });
	return $limited->launch;
}
$server = limited({ max_memory_bytes => 100_000_000, max_cpu_seconds => 1 });
my $hungry = { command => q{perl -e 'my $x = "x" x 300_000_000; print "fed"'} };
isnt $server->post('/shell', $hungry)->{json}{exit_code}, 0, 'memory has a limit' unless AbxServer::sanitized();
like $server->post('/shell', { command => q{perl -e '1 while 1'}, timeout => 60 })->{json}{exit_code}, qr/\A-(?:9|24)\z/, 'processor time has one';
$server->stop;
$server = limited({ max_processes => 600 }, ordinary => $> == 0);
{
	my $bomb = $server->connect;
	my $body = AbxServer::encode_json({ command => q{bash -c 'bomb() { bomb | bomb & }; bomb; sleep 1000'}, timeout => 3 });
	print $bomb "POST /shell HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: " . length($body) . "\r\n\r\n$body";
	ok AbxServer::wait_for(sub { AbxServer::children_of($server->responder('process')) > 0 }), 'a fork bomb';
	is $server->get('/health')->{status}, 200, 'the server answers' for 1 .. 5;
	is $server->get('/files/list?path=.')->{status}, 200, 'and works';
	like do { local $/; <$bomb> }, qr/"TimeoutError"/, 'it ends at its time';
	ok AbxServer::wait_for(sub { $server->post('/shell', { command => 'echo well' })->{json}{stdout} eq "well\n" }), 'and commands run again';
	ok AbxServer::wait_for(sub { !AbxServer::children_of($server->responder('process')) }), 'nothing of it is left';
}
is $server->stop, 0, 'the server stops';
if ($> == 0) {
	$server = limited({ max_processes => 600 });
	my $answer = $server->post('/shell', { command => 'touch made' });
	is $answer->{status}, 500, 'what the kernel does not limit';
	like $answer->{json}{error}, qr/\ACannot confine the command: The kernel does not limit root's processes/, 'is refused';
	is $server->post('/pty/sessions', { shell => '/bin/sh' })->{status}, 500, 'in terminals, too';
	ok !-e $server->base . '/made', 'nothing is run';
	$server->stop;
}

# What is allowed by a glob is no tree.
$server = server(globs => 1);
isnt run($server, "cat $outside/secret")->{exit_code}, 0, 'what is allowed by a glob cannot be had when confined';
is run($server, 'echo x >file && cat file')->{stdout}, "x\n", 'a tree beside it can';
$server->stop;

# Without abx-exec nothing is run.
my $bin = AbxServer::public_programs();
unlink "$bin/abx-exec";
$server = server(bin => $bin);
my $answer = $server->post('/shell', { command => 'touch made' });
is $answer->{status}, 500, 'without abx-exec: 500';
is $answer->{json}{type}, 'RuntimeError', 'its type';
like $answer->{json}{error}, qr/\ACannot confine the command: /, 'its message';
is $server->post('/shell/stream', { command => 'touch made' })->{status}, 500, 'no stream';
is $server->post('/process/start', { command => 'touch made' })->{status}, 500, 'no process';
is $server->post('/pty/sessions', { shell => '/bin/sh' })->{status}, 500, 'no terminal';
is_deeply $server->get('/pty/sessions')->{json}{sessions}, [], 'nor a session';
is_deeply $server->get('/process/list')->{json}{processes}, [], 'no row';
ok !-e $server->base . '/made', 'nothing is run';
is temps($server), 0, 'nothing is left';
done_testing;
