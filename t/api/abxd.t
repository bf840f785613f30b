#!/usr/bin/perl
# abxd: starts that succeed and starts that fail, the run directory, what is secret, and the end.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use AbxServer;
use POSIX ();
use Test::More;

my $TOKEN = 'a-token-that-nobody-guesses-4711';

sub mode_of {
	return (stat $_[0])[2] & 07777;
}

# Marks the processes of one test, so that they can be found again wherever they went.
sub pids_running {
	my ($mark) = @_;

	return grep { my $line = AbxServer::slurp("/proc/$_/cmdline"); defined $line && index($line, $mark) >= 0 && AbxServer::is_alive($_) }
	       map { m{/(\d+)\z} } glob '/proc/[0-9]*';
}

subtest 'a start' => sub {
	my $server = AbxServer->start;
	my $base = $server->base;

	like $server->{ready}, qr{\Aabx: listening on http://127\.0\.0\.1:\d+ \(base directory \Q$base\E\)\z}, 'the ready line';
	is $server->get('/health')->{status}, 200, '/health answers';
	is AbxServer::slurp($server->run . '/abxd.pid'), $server->pid . "\n", 'the pid is in the run directory';
	is mode_of($server->run), 0711, 'the mode of the run directory';
	my @sockets = glob $server->run . '/*.sock';
	is scalar @sockets, 9, 'a socket for each group';
	is_deeply [grep { mode_of($_) & 0077 } @sockets], [], 'nobody but the web server can connect to one';
	ok !defined $server->responder('agents'), 'an opt-in group does not run';
	is $server->get('/v1/models')->{json}{code}, 'endpoint_disabled', 'its first call is answered';
	ok defined $server->responder('agents'), 'and has started it';
	is $server->stop, 0, 'the exit status after SIGTERM';
	ok !-e $server->run, 'the run directory is gone';
	is_deeply [glob $server->{spool} . '/*'], [], 'nothing is left in the spool directory';
};

subtest 'a run directory that was there' => sub {
	my $server = AbxServer->prepare;

	mkdir $server->run, 0700;
	mkdir $server->run . '/lighttpd';
	AbxServer::spew($server->run . '/mine', 'x');
	AbxServer::spew($server->{spool} . '/mine', 'x');
	AbxServer::spew($server->{spool} . '/lighttpd-upload-abcdef', 'x');
	$server->launch;
	is $server->get('/health')->{status}, 200, 'it is used';
	is_deeply [glob $server->{spool} . '/*'], ["$server->{spool}/mine"], "what a lighttpd has left in the spool is removed";
	$server->stop;
	is_deeply [glob $server->run . '/*'], [$server->run . '/mine'], 'nothing of ours is left in it, and what is not ours is';
};

subtest 'as a daemon' => sub {
	my $server = AbxServer->prepare;
	my ($status, $out, $err) = $server->run_abxd('--port', '0');

	is $status, 0, 'it returns';
	is $err, '', 'with nothing on standard error';
	like $out, qr{\Aabx: listening on http://127\.0\.0\.1:(\d+) }, 'and says where it listens';
	($server->{port}) = $out =~ /:(\d+) /;
	is $server->get('/health')->{status}, 200, '/health answers by then';
	my $pid = AbxServer::slurp($server->run . '/abxd.pid') + 0;
	ok -f $server->run . '/abxd.log', 'there is a log';
	my @all = ($pid, AbxServer::descendants_of($pid));
	kill 'TERM', $pid;
	ok AbxServer::wait_for(sub { !grep { AbxServer::is_alive($_) } @all }), 'SIGTERM ends all of it';
};

subtest 'starts that fail' => sub {
	my $first = AbxServer->start;
	my $second = AbxServer->prepare(env => { ABX_RUN_DIR => $first->run });
	my $pid = $first->pid;
	my ($status, $out, $err) = $second->run_abxd('--foreground', '--port', '0');

	is $status, 1, 'a second server in the same run directory';
	like $err, qr/already running \(pid $pid\)/, 'is told which one is there';
	is $first->get('/health')->{status}, 200, 'the first one does not mind';

	my $third = AbxServer->prepare;
	for my $mode ('--foreground', undef) {
		my $how = $mode ? 'in the foreground' : 'as a daemon';
		($status, $out, $err) = $third->run_abxd($mode || (), '--port', $first->port);
		is $status, 1, "a port that is taken, $how";
		like $err, qr/\Aabxd: port \d+ on 127\.0\.0\.1 is already taken\n\z/, "is said in one line, $how";
		is $out, '', "and there is no ready line, $how";
		ok !-e $third->run, "nothing is left, $how";
	}

	my %bad = (ABX_SERVER_PORT => 'http', ABX_PTY_PORT => '70000', ABX_SERVER_ENABLED_GROUPS => 'agents,nothing', ABX_LOG_LEVEL => 'loud',
		   ABX_LOG_FORMAT => 'xml', ABX_MAX_UPLOAD_SIZE => '-1', ABX_SERVER_TOKEN => 'a,b', ABX_MOUNT_PREFIX => 'x y',
		   ABX_SERVER_HOST => 'a b', ABX_RUN_DIR => 'relative');
	for my $name (sort keys %bad) {
		my $server = AbxServer->prepare(env => { $name => $bad{$name} });
		($status, $out, $err) = $server->run_abxd('--foreground');
		is $status, 78, "$name=$bad{$name}";
		like $err, qr/\Aabxd: \Q$name\E: [^\n]+\n\z/, 'is named in one line';
	}
	($status, $out, $err) = $third->run_abxd('--foreground', '--port', '65536');
	is $status, 78, '--port 65536';
	($status, $out, $err) = $third->run_abxd('--nonsense');
	is $status, 64, 'an unknown option';
};

subtest 'run directories that are not taken' => sub {
	my $server = AbxServer->prepare;

	mkdir $server->dir . '/elsewhere';
	symlink $server->dir . '/elsewhere', $server->run;
	my ($status, $out, $err) = $server->run_abxd('--foreground', '--port', '0');
	is $status, 1, 'a symbolic link';
	is_deeply [glob $server->dir . '/elsewhere/*'], [], 'and nothing is written where it leads';
	unlink $server->run;
	SKIP: {
		skip 'only root can make a directory of another user', 2 if $> != 0;
		mkdir $server->run;
		chown 1, 1, $server->run;
		($status, $out, $err) = $server->run_abxd('--foreground', '--port', '0');
		is $status, 1, 'a directory of another user';
		like $err, qr/belongs to another user/, 'is named as the reason';
	}
};

subtest 'as an ordinary user, without a run directory' => sub {
	my $server = AbxServer->start(ordinary => 1, env => { ABX_RUN_DIR => undef, ABX_SPOOL_DIR => undef, TMPDIR => undef });
	my ($run) = AbxServer::slurp('/proc/' . $server->lighttpd . '/cmdline') =~ m{(/tmp/abx-\w+)/lighttpd.conf};

	is mode_of($run), 0711, 'a private one is made';
	isnt +(stat $run)[4], 0, 'by that user';
	is $server->get('/files/stat?path=.')->{status}, 200, 'calls are answered';
	is $server->post('/shell', { command => 'id -u' })->{json}{stdout}, (stat $run)[4] . "\n", 'commands run as that user';
	is $server->stop, 0, 'exit status';
	ok !-e $run, 'it is removed';
};

subtest 'hosts and prefixes' => sub {
	my $server = AbxServer->start(env => { ABX_SERVER_HOST => '::', ABX_MOUNT_PREFIX => '/sand/box' });

	like $server->{ready}, qr{ http://\[::\]:\d+/sand/box }, 'the ready line';
	is $server->get('/health')->{status}, 200, 'IPv4 reaches it, below the prefix';
	is $server->get('/files/stat?path=.')->{status}, 200, 'other groups, too';
	$server->{prefix} = '';
	my $answer = $server->get('/health');
	is $answer->{status}, 404, 'outside the prefix there is nothing';
	is $answer->{json}{type}, 'ValueError', 'which JSON says';
};

subtest "a web server of the image's own" => sub {
	my $server = AbxServer->start(args => ['--no-lighttpd', '--peer-user', scalar getpwuid $>]);
	my ($dir, $port) = ($server->dir, AbxServer::free_port());
	my $run = $server->run;

	like $server->{ready}, qr{\Aabx: serving in \Q$run\E }, 'the ready line names the run directory';
	ok !defined $server->lighttpd, 'abxd starts none';
	AbxServer::spew("$dir/own.conf", <<"END");
server.modules = ("mod_setenv", "mod_fastcgi", "mod_proxy")
server.document-root = "$dir"
server.bind = "127.0.0.1"
server.port = $port
var.abx_run = "$run"
include "$run/lighttpd/core.conf"
include "$run/lighttpd/file_ops.conf"
include "$run/lighttpd/end.conf"
END
	my ($lighttpd) = grep { -x } '/usr/sbin/lighttpd', map { "$_/lighttpd" } split /:/, $ENV{PATH};
	my $pid = fork();
	die "fork: $!" unless defined $pid;
	if (!$pid) {
		open STDERR, '>', "$dir/own.log";
		exec $lighttpd, '-D', '-f', "$dir/own.conf" or POSIX::_exit(127);
	}
	$server->{port} = $port;
	ok AbxServer::wait_for(sub { $server->get('/health')->{status} == 200 }), 'it mounts core';
	is $server->get('/files/stat?path=.')->{status}, 200, 'and file_ops';
	my $answer = $server->post('/shell', { command => 'true' });
	is $answer->{status}, 404, 'a group that it does not mount';
	is $answer->{json}{rule}, 'mount:process', 'is off, by that rule';
	kill 'TERM', $pid;
	waitpid $pid, 0;

	my $other = AbxServer->prepare;
	my ($status, $out, $err) = $other->run_abxd('--foreground', '--no-lighttpd', '--peer-user', 'no-such-user');
	is $status, 78, 'a user that does not exist';
	($status, $out, $err) = $other->run_abxd('--foreground', '--peer-user', 'nobody');
	is $status, 64, 'a user without --no-lighttpd';
};

subtest 'what is secret' => sub {
	my $server = AbxServer->start(env => { ABX_SERVER_TOKEN => $TOKEN }, token => $TOKEN);

	is $server->get('/capabilities', no_token => 1)->{status}, 401, 'the token is asked for';
	my $answer = $server->post('/commands/runshell', { cmd => 'cat /proc/self/environ; ls -l /proc/self/fd' });
	is $answer->{status}, 200, 'and taken';
	like $answer->{json}{result}{stdout}, qr/PATH=/, 'a command has an environment';
	unlike $answer->{json}{result}{stdout}, qr/ABX_/, 'with none of our variables';
	$server->get('/v1/models');
	for my $pid ($server->pid, AbxServer::descendants_of($server->pid)) {
		my $name = AbxServer::program_name($pid);
		my ($environ, $cmdline) = map { AbxServer::slurp("/proc/$pid/$_") } qw(environ cmdline);
		unlike "$environ$cmdline", qr/\Q$TOKEN\E/, "$name: no token in its environment or command line";
		unlike $environ, qr/ABX_\w+=[^\0]/, "$name: no value of a setting";
	}
	unlike $server->log_text, qr/\Q$TOKEN\E/, 'the log does not hold it';
};

subtest 'who may speak to a responder' => sub {
	my $server = AbxServer->start;

	require Socket;
	socket my $socket, Socket::AF_UNIX(), Socket::SOCK_STREAM(), 0 or die $!;
	SKIP: {
		connect $socket, Socket::pack_sockaddr_un($server->run . '/file_ops.sock') or skip "cannot even connect: $!", 1;
		# FCGI_BEGIN_REQUEST, parameters, no body: a whole request for /files/stat.
		my $params = join '', map { pack 'CCa*a*', length $_->[0], length $_->[1], @$_ }
			     ['REQUEST_METHOD', 'GET'], ['REQUEST_URI', '/files/stat?path=.'];
		my $request = pack('CCnnCx nCx5', 1, 1, 1, 8, 0, 1, 0) . pack('CCnnCx a*', 1, 4, 1, length $params, 0, $params) .
			      pack('CCnnCx', 1, 4, 1, 0, 0) . pack('CCnnCx', 1, 5, 1, 0, 0);
		local $SIG{PIPE} = 'IGNORE';
		syswrite $socket, $request;
		is AbxServer::read_until($socket), '', 'another process gets no answer';
	}
	my $groups = $server->get('/capabilities', headers => { ABX_MOUNTED => 'core', 'ABX-MOUNTED' => 'core' })->{json}{groups};
	ok $groups->{file_ops}, 'a header cannot say what is mounted';
};

subtest 'the end' => sub {
	for my $how ('TERM', 'KILL') {
		my $mark = "$$" . "0$how";
		my $server = AbxServer->start;
		my $client = fork();
		die "fork: $!" unless defined $client;
		if (!$client) {
			$server->post('/shell', { command => qq{sh -c 'setsid sh -c "sleep 300; : $mark" & sleep 300; : $mark'} });
			POSIX::_exit(0);
		}
		ok AbxServer::wait_for(sub { pids_running($mark) >= 2 }), "$how: commands run";
		my @all = AbxServer::descendants_of($server->pid);
		if ($how eq 'TERM') {
			is $server->stop, 0, "$how: exit status";
			is_deeply [grep { AbxServer::is_alive($_) } @all], [], "$how: all processes are gone by then";
		} else {
			my $pid = delete $server->{pid};
			kill 'KILL', $pid;
			waitpid $pid, 0;
			ok AbxServer::wait_for(sub { !grep { AbxServer::is_alive($_) } @all }), "$how: all processes end";
		}
		ok AbxServer::wait_for(sub { !grep { $_ != $client } pids_running($mark) }), "$how: the commands, too";
		kill 'KILL', $client;
		waitpid $client, 0;
	}
};

done_testing;
