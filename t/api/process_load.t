# Very many commands: every byte of every one, the right exit codes, and nothing that piles up. ABX_TEST_LONG=1 for the full numbers.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use AbxServer;
use LoadClient;
use Test::More;

my $LONG = $ENV{ABX_TEST_LONG};
my $server = AbxServer->start(env => { ABX_LOG_LEVEL => 'warning' });
my $base = $server->base;
my ($responder) = $server->responder('process');

sub fds      { return scalar(() = glob "/proc/$_[0]/fd/*") }
sub memory   { return (AbxServer::slurp("/proc/$_[0]/smaps_rollup") || '') =~ /^Pss_Anon:\s+(\d+)/m ? $1 : 0 }
sub zombies  { return scalar grep { (AbxServer::slurp($_) || '') =~ /\A\d+ \(.*\) Z $responder /s } glob '/proc/[0-9]*/stat' }
sub children { return scalar AbxServer::children_of($responder) }

# A program that writes and is gone: what it wrote is in a pipe that nobody holds any more.
my $n = $LONG ? 2000 : 200;
AbxServer::spew("$base/200k", join('', map { sprintf "%-99d\n", $_ } 1 .. 2000), 0644);
my $want = AbxServer::encode_json(AbxServer::slurp("$base/200k"));
is LoadClient::each_of($server, $n, 8, sub {
	my ($status, $body) = $_[0]->post('/shell', '{"command": "dd if=200k bs=200000 status=none"}');
	return $status == 200 && $body eq qq({"stdout": $want, "stderr": "", "exit_code": 0});
}), 0, "$n times 200,000 bytes from a program that exits at once, 8 in parallel: every byte every time";

# Orphans come to us or to abxd and end there, all the time.
$n = $LONG ? 1000 : 100;
is LoadClient::each_of($server, $n, 8, sub {
	my ($client, $i) = @_;
	if ($i % 2) {
		my ($status) = $client->post('/shell', q({"command": "bash -c '(setsid sleep 0.01 &); (true &); (bash -c \"true & true &\" &)'"}));
		return $status == 200;
	}
	my ($status, $body) = $client->post('/shell', q({"command": "bash -c 'exit 7'"}));
	return $status == 200 && $body eq '{"stdout": "", "stderr": "", "exit_code": 7}';
}), 0, "$n times exit 7 while orphans churn: always 7" for 1 .. 2;

# Nothing piles up. What is used once stays: threads, their buffers.
LoadClient::each_of($server, 400, 16, sub { ($_[0]->post('/shell', '{"command": "true"}'))[0] == 200 });
ok AbxServer::wait_for(sub { children() == 0 }), 'no child is left';
my ($fds, $memory, $files) = (fds($responder), memory($responder), scalar(() = glob("$server->{run}/* $server->{spool}/* /tmp/abx-*")));
$n = $LONG ? 20_000 : 1000;
is LoadClient::each_of($server, $n, 8, sub {
	my ($client, $i) = @_;
	my ($status, $body) = $client->post('/shell', '{"command": "echo hello"}');
	return $status == 200 && $body eq '{"stdout": "hello\n", "stderr": "", "exit_code": 0}';
}), 0, "$n calls";
ok AbxServer::wait_for(sub { fds($responder) <= $fds }), 'have left no descriptor';
is zombies(), 0, 'no zombie';
cmp_ok scalar(() = glob("$server->{run}/* $server->{spool}/* /tmp/abx-*")), '<=', $files + 2, 'no file (those of tests beside this one not counted)';
cmp_ok memory($responder) - $memory, '<', 2048, sprintf 'and less than 2 MiB of memory (%d KiB)', memory($responder) - $memory
	unless AbxServer::sanitized();

# Background processes, started and ended.
$n = $LONG ? 2000 : 200;
is LoadClient::each_of($server, $n, 4, sub {
	my ($client) = @_;
	my ($status, $body) = $client->post('/process/start', q({"command": "bash -c 'echo out; exit 3'", "capture_output": true}));
	my ($pid) = $body =~ /"pid": (\d+)/ or return 0;
	my $next = 0;
	while (1) {
		($status, $body) = $client->get("/process/$pid/output?since=$next&wait=30");
		return 0 if $status != 200;
		($next) = $body =~ /"next": (\d+)/;
		last if $body =~ /"exited"/;
	}
	return $body =~ /"exit_code": 3/ && ($client->get("/process/$pid/output"))[1] =~ /"data": "out\\n"/;
}), 0, "$n background processes: output and exit code of each";
ok AbxServer::wait_for(sub { children() == 0 }), 'no child is left';
ok AbxServer::wait_for(sub { fds($responder) <= $fds + 8 }), 'hardly a descriptor (what watches them)';

# One that is stuck does not stop another.
my @stuck;
for (1 .. 50) {
	my $client = LoadClient->new($server);
	my $body = q({"command": "sleep 300"});
	syswrite $client->socket, "POST /shell HTTP/1.1\r\nHost: x\r\nContent-Length: ${\ length $body}\r\n\r\n$body";
	push @stuck, $client;
}
ok AbxServer::wait_for(sub { children() == 50 }), 'fifty commands of five minutes run';
my $client = LoadClient->new($server);
is(($client->get('/health'))[0], 200, 'the server is healthy');
is(($client->post('/shell', '{"command": "echo another"}'))[1], '{"stdout": "another\n", "stderr": "", "exit_code": 0}', 'another command is run');
is $server->stop, 0, 'and the server ends in time';

done_testing;
