# The worker of a template's own code: how it is taken over, watched, started again and ended.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;

use FakeWorker;

plan skip_all => 'python3 is not there' unless FakeWorker::available();

my ($yes, $no) = (JSON::PP::true, JSON::PP::false);
my @commands = map { FakeWorker::command($_) } qw(echo ask die hang environ spawn);

# The next worker's pid, once it serves.
sub next_worker {
	my ($server, $old) = @_;

	return AbxServer::wait_for(sub { my $pid = $server->worker; return $pid != $old && $server->lines('accepts') >= $server->lines('workers') ? $pid : undef });
}

sub warnings_of {
	my ($server) = @_;

	return join "\n", @{ $server->get('/capabilities')->{json}{warnings} };
}

# ---- deaths

my $server = FakeWorker->start(table => { commands => \@commands },
	env => { CI_TOKEN => 's3cret', ABX_SERVER_POLICY => '{"identities": [{"id": "ci", "token_env": "CI_TOKEN", "scopes": ["*"]}]}', ABX_LOG_LEVEL => 'debug' }, token => 's3cret');
my $first = $server->worker;
{
	my $accept = AbxServer::decode_json(($server->lines('accepts'))[0]);
	is $accept->{accept}, $yes, 'the worker is accepted';
	is_deeply $accept->{secrets}, ['CI_TOKEN'], 'and learns which variables hold tokens';
	like $accept->{invocation}, qr/\A[0-9a-f]{32}\z/, 'and how what it starts is marked';
	is $server->run('ask')->{json}{result}{pid}, $first, 'it serves';
	my ($own) = grep { $_ == $first } AbxServer::children_of($server->pid);
	ok $own, 'it is a child of abxd';
}
{
	my $pid = $server->run('spawn')->{json}{result};
	ok AbxServer::is_alive($pid), 'a function starts a process with a session of its own';
	kill 'KILL', $first;
	ok AbxServer::wait_for(sub { !AbxServer::is_alive($pid) }), 'which ends with the worker';
	my $answer = $server->run('ask');
	is $answer->{status}, 200, 'a call while there is no worker waits for the next';
	isnt $answer->{json}{result}{pid}, $first, 'which is another';
	like $server->log_text, qr/the worker of commands\.py \(pid $first\) was killed by signal 9/, 'the log tells of the death';
	is $server->worker, $answer->{json}{result}{pid}, 'it is the second';
	my @environ = @{ $server->run('environ')->{json}{result} };
	ok !grep({ /\AABX_(?!WORKER_FDS=)|s3cret|CI_TOKEN/ } @environ), 'its environment holds nothing of the server' or diag explain \@environ;
	ok grep({ /\AINVOCATION_ID=/ } @environ), 'but the mark';
	$pid = $server->run('spawn')->{json}{result};
	kill 'KILL', $server->worker;
	ok AbxServer::wait_for(sub { !AbxServer::is_alive($pid) }), 'what the second worker started ends with it, too';
	is $server->run('ask')->{status}, 200, 'and there is a third';
}
{
	my $socket = $server->connect;
	print $socket "POST /commands/hang HTTP/1.0\r\nHost: x\r\nX-Access-Token: s3cret\r\nX-Request-Id: mid-1\r\nContent-Length: 2\r\n\r\n{}";
	ok AbxServer::wait_for(sub { grep { $_ eq 'hang began' } $server->lines('events') }), 'a call is under way';
	kill 'KILL', $server->worker;
	my $answer = AbxServer::parse_response(AbxServer::read_until($socket));
	is $answer->{status}, 500, 'when the worker dies';
	is_deeply $answer->{json}, { error => 'The worker of commands.py ended during this call (request mid-1)', type => 'RuntimeError' }, 'the call ends with it';
	is $server->run('die')->{status}, 500, 'a function that ends the worker';
	is $server->run('echo', { a => 1 })->{json}{result}{a}, 1, 'the next call is served';
	for my $how ('die', 'close') {
		$server->tell(drop => $how);
		is $server->run('echo', { a => 2 })->{json}{result}{a}, 2, "a call that is lost before a thread has begun with it ($how) is given to another";
	}
}

# ---- starts that fail

{
	my $old = $server->worker;
	$server->tell(broken => "Traceback (most recent call last):\n  import x\nModuleNotFoundError: No module named 'x'\n\n");
	kill 'KILL', $old;
	ok AbxServer::wait_for(sub { warnings_of($server) =~ /^commands\.py: the worker does not start, it exited with status 1: ModuleNotFoundError: No module named 'x'$/m }),
		'an import error is a warning of /capabilities';
	like $server->log_text, qr/error abxd: commands\.py: the worker does not start.*No module named 'x'/, 'and in the log';
	like $server->log_text, qr/^Traceback \(most recent call last\):$/m, 'which has all that was written';
	like $server->log_text, qr/^this goes to standard error as well$/m, 'on standard output as well';
	my $answer = $server->run('echo');
	is $answer->{status}, 503, 'a call does not wait for ever';
	like $answer->{json}{error}, qr/No module named 'x'/, 'and is told why';
	is $answer->{json}{type}, 'RuntimeError', 'with a type';
	is $server->get('/health')->{status}, 200, 'the server is there';
	is $server->get('/commands')->{status}, 200, 'and so is the list';
	$server->tell(broken => undef);
	is $server->run('echo', { a => 3 })->{json}{result}{a}, 3, 'when it starts again calls are served';
	unlike warnings_of($server), qr/commands\.py/, 'and nothing is warned of any more';
}
{
	my $old = $server->worker;
	$server->tell('again.json', AbxServer::encode_json(FakeWorker::table(commands => [@commands, FakeWorker::command('more')])));
	kill 'KILL', $old;
	ok AbxServer::wait_for(sub { warnings_of($server) =~ /^commands\.py: the worker came back with other commands.*is refused/m }), 'a worker with another table is refused';
	ok AbxServer::wait_for(sub { $server->lines('workers') > 8 }), 'and tried again';
	is $server->run('more')->{status}, 404, 'what it would have is not there';
	is $server->run('echo')->{status}, 503, 'what it has is not called';
	$server->tell('again.json', undef);
	is $server->run('echo', { a => 4 })->{json}{result}{a}, 4, 'one with the old table is taken';
	unlike warnings_of($server), qr/commands\.py/, 'and nothing is warned of any more';
}

# ---- the end

{
	my $worker = $server->worker;
	my $pid = $server->run('spawn')->{json}{result};
	is $server->stop, 0, 'the server stops';
	ok !AbxServer::is_alive($worker), 'the worker is gone with it';
	ok !AbxServer::is_alive($pid), 'and what that had started';
}

$server = FakeWorker->start(tell => { stubborn => '' });
{
	my $worker = $server->worker;
	is $server->stop, 0, 'the server stops though the worker does not mind being told';
	ok !AbxServer::is_alive($worker), 'and ends it';
}

# ---- the layers of the policy

$server = FakeWorker->prepare(table => { commands => [FakeWorker::command('echo')], groups => { browser => $yes, process => $no, system => $no, dev_tools => $yes } },
	env => { ABX_SERVER_ENABLED_GROUPS => 'system', AGAIN_TOKEN => 'ag4in' });
$server->{env}{ABX_SERVER_POLICY} = $server->dir . '/policy.json';
AbxServer::spew($server->dir . '/policy.json', '{"endpoints": {"code_run": {"enabled": false}}}');
$server->launch;
{
	my $endpoints = $server->get('/capabilities')->{json}{endpoints};
	is $endpoints->{shell}{rule}, 'code:commands.py', 'a group that the code turns off';
	ok $endpoints->{browser_navigate}{enabled}, 'one that it turns on';
	ok $endpoints->{env_get}{enabled}, 'the environment is stronger';
	is $endpoints->{code_run}{rule}, 'policy:endpoints.code_run', 'and so is the policy';
	ok $endpoints->{git_diff}{enabled}, 'as far as it says something';
	my $answer = $server->post('/shell', { command => 'true' });
	is $answer->{json}{rule}, 'code:commands.py', 'a refusal names the rule';
	my @accepts = $server->lines('accepts');
	AbxServer::spew($server->dir . '/policy.json', '{"groups": {"process": true}, "identities": [{"id": "x", "token_env": "AGAIN_TOKEN", "scopes": ["*"]}]}');
	kill 'HUP', $server->pid;
	$server->{token} = 'ag4in';
	ok AbxServer::wait_for(sub { ($server->post('/shell', { command => 'true' })->{status} || 0) == 200 }), 'a new policy';
	ok AbxServer::wait_for(sub { my $e = $server->get('/capabilities')->{json}{endpoints}; $e && $e->{code_run}{enabled} && $e->{browser_navigate}{enabled} }), 'is built with the same code';
	is $server->run('echo', { a => 5 })->{json}{result}{a}, 5, 'whose commands go on';
	ok AbxServer::wait_for(sub { ($server->lines('accepts'))[-1] =~ /AGAIN_TOKEN/ }), 'the worker learns of its secrets';
	my $worker = $server->worker;
	kill 'KILL', delete $server->{pid};
	ok AbxServer::wait_for(sub { !AbxServer::is_alive($worker) }), 'the worker ends when abxd is killed';
}

# ---- the template's policy

$server = FakeWorker->start(tell => { 'template.yaml' => "name: x\nserver:\n  endpoints:\n    ports: {enabled: false}\n" });
is $server->get('/ports')->{json}{rule}, 'policy:endpoints.ports', 'the template beside the code has the policy';
is $server->get('/capabilities')->{json}{policy}{configured}, $yes, 'which is said';
is $server->stop, 0, 'the server stops';
$server = FakeWorker->start(tell => { 'template.yaml' => "name: x\nports: [9000]\n" });
is $server->get('/capabilities')->{json}{policy}{configured}, $no, 'a template without a policy has none';
is $server->stop, 0, 'the server stops';
$server = FakeWorker->start(tell => { 'template.yaml' => "server: {endpoints: {ports: {enabled: false}}}\n" }, env => { ABX_SERVER_POLICY => '{}' });
is $server->get('/ports')->{status}, 200, 'the setting beats it';
is $server->stop, 0, 'the server stops';

# ---- what does not start

my $route = FakeWorker::route('GET', '/a');
for my $case (
	[{ table => { groups => { core => $no } } }, qr/commands\.py: group 'core': core is always on/],
	[{ table => { routes => [$route, FakeWorker::route('GET', '/a', id => 'b')] } }, qr/route 'b': GET \/a is 'GET \/a' already/],
	[{ table => { routes => [FakeWorker::route('GET', '/process/{id}')] } }, qr/is 'process_get' already/],
	[{ table => { routes => [FakeWorker::route('GET', '/a/')] } }, qr/commands\.py: route 'GET \/a\/': it ends with '\/'/],
	[{ tell => { 'launch.json' => '{"pid": 1}' } }, qr/--code: the launch document: 'pid' is no child/],
	[{ tell => { 'launch.json' => '{"argv": ["python3"]}' } }, qr/'argv' must begin with the absolute path/],
	[{ tell => { 'launch.json' => '{"template": "t.yaml"}' } }, qr/'template' must be/],
	[{ tell => { 'launch.json' => '{"calls": [0, 1]}' } }, qr/'calls' must be two SOCK_SEQPACKET sockets/],
	[{ tell => { 'launch.json' => '{"table": null}' } }, qr/'table' is missing/],
	[{ tell => { 'launch.json' => '{"table": "{"}' } }, qr/the template's code: /],
) {
	my ($given, $message) = @$case;
	my $broken = FakeWorker->prepare(%$given);
	my ($status, $out, $err) = $broken->run_abxd('--foreground', '--port', '0');

	is $status, 78, "no start: $message";
	like $err, $message, 'says why';
	is scalar(grep { length } split /\n/, $err), 1, 'in one line' or diag $err;
	is $out, '', 'and nothing else';
	my $worker = $broken->worker;
	ok !$worker || AbxServer::wait_for(sub { !AbxServer::is_alive($worker) }), 'the worker is gone';
}
{
	my $broken = FakeWorker->prepare(tell => { 'first.json' => '{"version":1}' });
	my ($status, $out, $err) = $broken->run_abxd('--foreground', '--port', '0');
	is $status, 1, 'no start: the worker itself knows another table';
	like $err, qr/^abxd: commands\.py: the worker came back with other commands/m, 'says why';
	is $out, '', 'and is never ready';
	($status, $out, $err) = FakeWorker->prepare()->run_abxd('--port', '0');
	is $status, 64, 'not as a daemon: the worker would be nobody\'s child';
	like $err, qr/--code needs --foreground/, 'says why';
}

done_testing;
