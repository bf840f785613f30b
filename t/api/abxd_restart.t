#!/usr/bin/perl
# abxd: what happens when a responder or the web server dies, when names are deleted, and when the policy is read again.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use AbxServer;
use File::Copy ();
use POSIX ();
use Test::More;

# A directory with abxd and all responders, where some may be replaced: abxd takes those that lie beside it.
sub bin_with {
	my (%program) = @_;
	my ($from, $dir) = (AbxServer::bin_dir(), AbxServer::temp_dir());

	File::Copy::copy("$from/abxd", "$dir/abxd") or die "abxd: $!";
	chmod 0755, "$dir/abxd";
	for my $path (glob "$from/abx-*") {
		my ($name) = $path =~ m{([^/]+)\z};
		next if exists $program{$name} || -d $path || !-x _;
		symlink $path, "$dir/$name" or die "$name: $!";
	}
	for my $name (grep { defined $program{$_} } keys %program) {
		AbxServer::spew("$dir/$name", $program{$name}, 0755);
	}
	return $dir;
}

# Start a client that asks for a path again and again until the file `stop` is there, and then writes down what it has got.
sub start_client {
	my ($server, $path, $stop, $report) = @_;
	my $pid = fork();

	die "fork: $!" unless defined $pid;
	return $pid if $pid;
	my %count;
	until (-e $stop) {
		my $answer = $server->get($path);
		my $type = $answer->{status} == 200 ? 'ok' : $answer->{json} ? $answer->{json}{type} : 'no JSON';
		$count{"$answer->{status} $type"}++;
		AbxServer::spew("$report.begun", '') if keys %count == 1 && !-e "$report.begun";
	}
	AbxServer::spew($report, AbxServer::encode_json(\%count));
	POSIX::_exit(0);
}

# Wait for a responder of the group that is another one than `old`.
sub next_responder {
	my ($server, $group, $old) = @_;

	return AbxServer::wait_for(sub {
		my ($pid) = grep { $_ != ($old || 0) } $server->responders($group);
		return $pid;
	});
}

subtest 'a responder killed under load' => sub {
	my $server = AbxServer->start;
	my $stop = $server->dir . '/stop';
	my (%report, @pids);

	for my $path ('/health', '/files/stat?path=.') {
		for my $i (1 .. 3) {
			my $report = $server->dir . "/report-" . scalar keys %report;
			$report{$report} = $path;
			push @pids, start_client($server, $path, $stop, $report);
		}
	}
	ok AbxServer::wait_for(sub { !grep { !-e "$_.begun" } keys %report }), 'clients ask';
	my $kills = 3;
	for (1 .. $kills) {
		my $old = $server->responder('file_ops');
		kill 'KILL', $old;
		ok next_responder($server, 'file_ops', $old), 'there is a new one';
		is $server->get('/files/stat?path=.')->{status}, 200, 'which answers';
	}
	AbxServer::spew($stop, '');
	waitpid $_, 0 for @pids;
	my %total;
	for my $report (keys %report) {
		my $count = AbxServer::decode_json(AbxServer::slurp($report));
		$total{$report{$report}}{$_} += $count->{$_} for keys %$count;
	}
	is_deeply [keys %{ $total{'/health'} }], ['200 ok'], 'callers of another group saw nothing of it';
	my $stat = $total{'/files/stat?path=.'};
	my $broken = delete $stat->{'500 RuntimeError'} || 0;
	is_deeply [keys %$stat], ['200 ok'], 'callers of its own see a true answer, or an error that is JSON';
	cmp_ok $broken, '<=', 3 * $kills, 'and an error only if they were being answered';
};

subtest 'what a dead responder leaves' => sub {
	my $server = AbxServer->start;
	my $mark = "$$" . '0left';
	my $client = fork();
	die "fork: $!" unless defined $client;
	if (!$client) {
		my $answer = $server->post('/shell', { command => qq{sh -c 'setsid sh -c "sleep 300; : $mark" & sleep 300; : $mark'} });
		POSIX::_exit($answer->{status} == 500 && $answer->{json}{type} eq 'RuntimeError' ? 0 : 1);
	}
	my @running;
	ok AbxServer::wait_for(sub {
		@running = grep { (AbxServer::slurp("/proc/$_/cmdline") || '') =~ /\Q$mark\E/ } AbxServer::descendants_of($server->pid);
		return @running >= 2;
	}), 'a command runs';
	my $old = $server->responder('process');
	kill 'KILL', $old;
	ok AbxServer::wait_for(sub { !grep { AbxServer::is_alive($_) } @running }), 'it is ended, and what has left its group, too';
	waitpid $client, 0;
	is $?, 0, 'its caller is told';
	is $server->post('/shell', { command => 'echo again' })->{json}{stdout}, "again\n", 'the next command runs';
	ok AbxServer::wait_for(sub { !grep { (AbxServer::slurp($_) || '') =~ /\) Z $server->{pid} / } glob '/proc/[0-9]*/stat' }),
	   'no zombie is left';
};

subtest 'a responder that does not come up' => sub {
	my $bin = bin_with('abx-process' => "#!/bin/sh\nexit 3\n", 'abx-system' => undef);
	my $server = AbxServer->start(bin => $bin);

	is $server->get('/health')->{status}, 200, 'the server starts without it';
	my $answer = $server->post('/shell', { command => 'true' });
	is $answer->{status}, 500, 'its callers get an error';
	is $answer->{json}{type}, 'RuntimeError', 'that is JSON';
	is $server->get('/files/stat?path=.')->{status}, 200, 'other groups work';
	like $server->log_text, qr/process \(pid \d+\) exited with status 3/, 'the log says how it died';
	unlink "$bin/abx-process";
	symlink AbxServer::bin_dir() . '/abx-process', "$bin/abx-process";
	ok AbxServer::wait_for(sub { $server->post('/shell', { command => 'true' })->{status} == 200 }), 'it is tried again';
	$answer = $server->get('/system/info');
	is $answer->{status}, 404, 'a group that is not installed';
	is $answer->{json}{rule}, 'mount:system', 'is one that is not mounted';
};

subtest 'a core that does not come up' => sub {
	my $bin = bin_with('abx-core' => "#!/bin/sh\nexit 3\n");
	my $server = AbxServer->prepare(bin => $bin);
	my ($status, $out, $err) = $server->run_abxd('--foreground', '--port', '0');

	is $status, 1, 'is the end of the start';
	like $err, qr/^abxd: \S+abx-core exited with status 3$/m, 'with the reason';
	is $out, '', 'and no ready line';
	ok !-e $server->run, 'and nothing is left';
};

subtest 'names that are deleted' => sub {
	my $server = AbxServer->start;

	$server->get('/v1/models');
	my $old = $server->responder('file_ops');
	unlink $server->run . "/$_.sock" for qw(file_ops agents dev_tools);
	ok AbxServer::wait_for(sub { -S $server->run . '/file_ops.sock' && -S $server->run . '/dev_tools.sock' }),
	   'sockets are made again';
	isnt next_responder($server, 'file_ops', $old), undef, 'with a responder each';
	for my $path ('/files/stat?path=.', '/v1/models', '/git/status?path=.') {
		ok AbxServer::wait_for(sub { $server->get($path)->{status} =~ /\A(?:200|404)\z/ }), "$path is answered";
	}
	ok AbxServer::wait_for(sub { !AbxServer::is_alive($old) }), 'the old responder has gone';

	unlink $server->run . '/abxd.pid';
	ok AbxServer::wait_for(sub { -s $server->run . '/abxd.pid' }), 'the pid is written again';
	rename $server->run, $server->dir . '/gone';
	ok AbxServer::wait_for(sub { -S $server->run . '/core.sock' && -e $server->run . '/abxd.pid' }), 'the whole directory, too';
	ok AbxServer::wait_for(sub { $server->get('/health')->{status} == 200 }), '/health answers again';
	my $other = AbxServer->prepare(env => { ABX_RUN_DIR => $server->run });
	my ($status, $out, $err) = $other->run_abxd('--foreground', '--port', '0');
	is $status, 1, 'and no other server gets into it';
	is $server->stop, 0, 'exit status';
	ok !-e $server->run, 'nothing is left';
};

subtest 'the web server killed' => sub {
	my $server = AbxServer->start;
	my $old = $server->lighttpd;

	for my $times (1 .. 2) {
		kill 'KILL', $old;
		ok AbxServer::wait_for(sub { ($server->lighttpd || $old) != $old }), 'there is a new one';
		$old = $server->lighttpd;
		is $server->get('/files/stat?path=.')->{status}, 200, 'a call after it is answered';
	}
};

subtest 'the policy is read again' => sub {
	my $server = AbxServer->start;
	my %old = map { $_ => $server->responder($_) } qw(core commands file_ops process);
	my ($begun, $go) = map { $server->dir . "/$_" } qw(begun go);

	my $client = fork();
	die "fork: $!" unless defined $client;
	if (!$client) {
		my $answer = $server->post('/commands/runshell', { cmd => "touch $begun; until [ -e $go ]; do sleep 0.02; done; echo whole" });
		POSIX::_exit($answer->{status} == 200 && $answer->{json}{result}{stdout} eq "whole\n" ? 0 : 1);
	}
	ok AbxServer::wait_for(sub { -e $begun }), 'a command runs';
	kill 'HUP', $server->pid;
	ok next_responder($server, $_, $old{$_}), "$_ is replaced" for qw(core commands file_ops);
	is $server->get('/health')->{status}, 200, 'calls are answered';
	ok AbxServer::wait_for(sub { !AbxServer::is_alive($old{$_}) }), "the old $_ goes" for qw(core file_ops);
	ok AbxServer::is_alive($old{commands}), 'one that is busy stays';
	is $server->responder('process'), $old{process}, 'process, which has state, is not replaced';
	AbxServer::spew($go, '');
	waitpid $client, 0;
	is $?, 0, 'the command ends well';
	ok AbxServer::wait_for(sub { !AbxServer::is_alive($old{commands}) }), 'and then the old responder goes';
};

done_testing;
