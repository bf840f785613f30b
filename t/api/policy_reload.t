# Reading the policy again: no request is lost, a good document holds in every group from then on, a bad one changes nothing and is told.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use AbxPolicy;
use AbxServer;
use Test::More;
use Time::HiRes ();

my $first = <<'END';
version: 1
endpoints:
  shell: {commands: {allow: ["echo *", "sleep *", "env"]}}
  files_stat: {paths: {deny: ["**/one"]}}
END
my $server = start_with($first, env => { LATER_TOKEN => 'later-token-4715', ABX_LOG_LEVEL => 'info' });
my $base = $server->base;

sub shell {
	my ($command, %option) = @_;

	return $server->post('/shell', { command => $command }, %option);
}

sub revision {
	return $server->get('/capabilities', @_)->{json}{policy}{revision};
}

# Clients that call until the file `stop` is there. Each ends with status 0 when all its answers were what it wanted.
sub start_clients {
	my @calls = (
		sub { $server->get('/health')->{status} == 200 },
		sub { $server->get('/files/stat?path=x')->{status} == 200 },
		sub { $server->post('/shell', { command => 'echo x' })->{status} == 200 },
		sub { $server->post('/commands/runshell', { cmd => 'echo x' })->{status} == 200 },
		sub { $server->get('/env')->{status} == 200 },
		sub { $server->get('/capabilities')->{status} == 200 },
	);

	return map {
		my $call = $_;
		my $pid = fork // die;
		if ($pid == 0) {
			my $bad = 0;
			delete $server->{http};
			until (-e "$base/stop") {
				$bad++ unless $call->();
			}
			POSIX::_exit($bad > 255 ? 255 : $bad);
		}
		$pid;
	} @calls;
}

subtest 'a good document' => sub {
	my $process = $server->responder('process');
	my $files = $server->responder('file_ops');
	my $old = revision();

	is shell('echo x')->{status}, 200, 'a command that is allowed';
	is shell('true')->{status}, 403, 'one that is not';
	is $server->get('/files/stat?path=one')->{status}, 403, 'a path that is denied';
	write_policy($server, $first =~ s/"env"/"env", "true"/r =~ s{\*\*/one}{**/two}r);
	my ($status, $out) = reload($server);
	is $status, 0, 'reload';
	like $out, qr/has read its policy again \(revision [0-9a-f]{16}\)/, 'says so';
	isnt revision(), $old, 'there is a new revision';
	is shell('true')->{status}, 200, 'where processes live, it holds';
	is $server->responder('process'), $process, 'in the responder that was there';
	is $server->get('/files/stat?path=one')->{status}, 200, 'elsewhere, too';
	is $server->get('/files/stat?path=two')->{status}, 403, 'by a new one';
	ok AbxServer::wait_for(sub { !AbxServer::is_alive($files) }), 'whose predecessor goes';
	kill 'KILL', $process;
	is AbxServer::wait_for(sub { my $answer = shell('true')->{status}; $answer == 200 ? 200 : undef }), 200, 'a responder that is started again follows it as well';
	is shell('false')->{status}, 403, 'in what it forbids';
};

subtest 'a bad document' => sub {
	my $old = revision();

	for my $bad ("version: 2\n", "endpoints:\n  shell: {commands: {allow: [\"*\"]}}\n  shel: {}\n", 'a: [', "identities: [{id: x, token_env: NO_SUCH}]\n") {
		write_policy($server, $bad);
		my ($status, $out) = reload($server);
		is $status, 1, 'reload';
		like $out, qr{\Aabxctl: the new policy is not taken: \Q$server->{policy}\E:\d+: .+}, 'says why';
		is revision(), $old, 'the old one is in force';
		is shell('false')->{status}, 403, 'in every group';
		my $warnings = $server->get('/capabilities')->{json}{warnings};
		is scalar @$warnings, 1, 'one warning';
		like $warnings->[0], qr/\AThe policy could not be read again at \d{4}-\S+: the one before is still in force/, 'tells callers';
		unlike $warnings->[0], qr/shel|NO_SUCH|version/, 'and nothing of what is in it';
	}
	like $server->log_text, qr{the new policy is not taken.*policy\.yaml:1: version: must be 1}, 'the log tells the rest';
	unlink $server->{policy};
	my ($status, $out) = reload($server);
	is $status, 1, 'a document that is gone';
	like $out, qr/cannot be read: No such file/, 'is none';
	is revision(), $old, 'the old one is in force';
	write_policy($server, $first);
	($status, $out) = reload($server);
	is $status, 0, 'a good one' or diag $out;
	is_deeply $server->get('/capabilities')->{json}{warnings}, [], 'takes the warning away';
	is shell('true')->{status}, 403, 'and holds';
};

subtest 'a call that is under way' => sub {
	my $pid = fork // die;
	if ($pid == 0) {
		delete $server->{http};
		my $answer = $server->post('/commands/runshell', { cmd => 'sleep 2' });
		POSIX::_exit($answer->{status} == 200 ? 0 : 1);
	}
	AbxServer::wait_for(sub { grep { AbxServer::program_name($_) eq 'sleep' } AbxServer::descendants_of($server->pid) });
	write_policy($server, $first =~ s/"sleep \*"/"none"/r);
	my ($status, $out) = reload($server);
	is $status, 0, 'a reload does not wait for it' or diag $out;
	is $server->post('/commands/runshell', { cmd => 'sleep 0' })->{status}, 403, 'the new policy holds for others';
	waitpid $pid, 0;
	is $?, 0, 'it ends as it began';
};

subtest 'under load' => sub {
	my @clients = start_clients();
	my ($good, $reloads) = (0, 0);

	for my $round (1 .. 5) {
		write_policy($server, $first . "  upload: {limits: {max_bytes: $round}}\n");
		my ($status, $out) = reload($server);
		$good += $status == 0;
		is $server->get('/capabilities')->{json}{endpoints}{upload}{limits}{max_bytes}, $round, "round $round is in force" or diag $out;
		write_policy($server, "nonsense: $round\n");
		($status) = reload($server);
		$good += $status == 1;
		is $server->get('/capabilities')->{json}{endpoints}{upload}{limits}{max_bytes}, $round, 'and stays';
	}
	is $good, 10, 'each reload went as it should';
	AbxServer::spew("$base/stop", '');
	for my $pid (@clients) {
		waitpid $pid, 0;
		is $? >> 8, 0, 'a client saw no error';
	}
};

subtest 'a first identity' => sub {
	write_policy($server, $first . "identities: [{id: later, token_env: LATER_TOKEN, scopes: []}]\n");
	like shell('env')->{json}{stdout}, qr/LATER_TOKEN/, 'as long as no identity is named, the variable is like any other';
	my ($status, $out) = reload($server);
	is $status, 0, 'a reload' or diag $out;
	is shell('echo x')->{status}, 401, 'ends local mode in the responder that was there';
	is $server->get('/files/stat?path=.')->{status}, 401, 'and elsewhere';
	my %token = (headers => { Authorization => 'Bearer later-token-4715' });
	is shell('echo x', %token)->{status}, 200, 'the token is known';
	unlike shell('env', %token)->{json}{stdout}, qr/LATER_TOKEN|4715/, 'and no child sees it any more';
	for my $pid ($server->pid) {
		unlike AbxServer::slurp("/proc/$pid/environ"), qr/4715/, 'nor is it in the environment of abxd';
	}
	write_policy($server, $first . "identities: [{id: later, token_env: LATER_TOKEN, scopes: [x]}]\n");
	($status, $out) = reload($server);
	is $status, 0, 'a further reload' or diag $out;
	is shell('echo x', %token)->{status}, 200, 'remembers it';
};

is $server->stop, 0, 'the server ends';
done_testing;
