# Commands of a template's own code: what goes to the worker, and what comes of what it says.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;

use FakeWorker;

plan skip_all => 'python3 is not there' unless FakeWorker::available();

my @names = qw(echo ask raw big fail hang garbage environ);
my $args = [{ name => 'n', type => 'integer', required => JSON::PP::false, default => 3, description => 'A number.' },
	    { name => 'who', type => 'string', required => JSON::PP::true, default => undef, description => '' }];
my $policy = AbxServer::encode_json({
	endpoints => { commands_run => { limits => { timeout_seconds => 20 } } },
	identities => [{ id => 'plain', token_env => 'PLAIN_TOKEN', scopes => ['other'] }, { id => 'secret', token_env => 'SECRET_TOKEN', scopes => ['secret:*'] }],
});
my $server = FakeWorker->start(
	table => { commands => [(map { FakeWorker::command($_) } @names), FakeWorker::command('args', args => $args),
				FakeWorker::command('upload', description => 'Not the built-in one.'),
				FakeWorker::command('secret', scopes => ['secret:run'], hidden => JSON::PP::false), FakeWorker::command('unseen', hidden => JSON::PP::true)] },
	env => { ABX_SERVER_POLICY => $policy, ABX_SERVER_TOKEN => 't0p', PLAIN_TOKEN => 'pl4in', SECRET_TOKEN => 's3cret' }, token => 't0p');

# ---- the list

{
	my %list = map { $_->{name} => $_ } @{ $server->get('/commands')->{json}{commands} };
	is_deeply $list{args}{args}, $args, 'arguments are listed as the table has them';
	ok $list{secret}, 'a command whose scope is held is listed';
	ok !$list{unseen}, 'a hidden one is not';
	is $list{upload}{description}, 'Not the built-in one.', 'a built-in name is replaced';
	like join("\n", @{ $server->get('/capabilities')->{json}{warnings} }), qr/commands\.py: the command 'upload' replaces the built-in one/, 'with a warning';
	%list = map { $_->{name} => $_ } @{ $server->get('/commands', no_token => 1, headers => { 'X-Access-Token' => 'pl4in' })->{json}{commands} };
	ok $list{echo} && !$list{secret}, 'a command whose scope is not held is not listed';
}

# ---- what the worker hears

{
	my $answer = $server->run('ask', undef, headers => { 'X-Request-Id' => 'my-id' });
	is $answer->{status}, 200, 'a call';
	is_deeply $answer->{json}{result}{question}, { kind => 'command', name => 'ask', request_id => 'my-id', identity => { id => 'admin', scopes => ['*'] } },
		'its question';
	is $answer->{json}{result}{body}, '{}', 'its body';
	is $server->post('/commands/ask')->{json}{result}{body}, '', 'no body stays none';
	for my $body ('{ "a" : "\u00e9\n" ,"b":1.50 , "c": [1,2,  3], "content_base64": "' . 'YQ' x 20000 . '"}', '{"x": null}', " {\"deep\": [[[]]]}\t\n") {
		is $server->post('/commands/ask', $body)->{json}{result}{body}, $body, 'a body arrives as it was sent: ' . substr $body, 0, 30;
	}
	my $long = '{"x": "' . 'y' x 10_000_000 . '"}';
	is length $server->post('/commands/echo', $long)->{content}, length($long) + length('{"result": }'), 'a body of 10 MB';
	is $server->post('/commands/ask', $_)->{status}, 400, "not a body: $_" for '[1]', '{"a": NaN}', '{"a": 123456789012345678901}', '{"a": 1, "a": 2}', '{', "{\"a\": \"\xff\"}";
	is $server->run('nothing')->{status}, 404, 'an unknown command';
	my $answer2 = $server->run('unseen', {}, headers => { 'X-Request-Id' => 'lost-1' });
	is $answer2->{status}, 500, 'a hidden command is run, and here the worker ends the call without a word';
	is_deeply $answer2->{json}, { error => 'The worker of commands.py ended during this call (request lost-1)', type => 'RuntimeError' }, 'which is said';
}

# ---- what it answers

for my $text ('null', '123456789012345678901234567890', '1e400', 'NaN', '"\ud83d\ude00 \u0000"', '{"a": [1, {"b": 0.1}]}') {
	my $answer = $server->run('raw', { text => $text });
	is $answer->{status}, 200, "the result $text";
	is $answer->{content}, qq({"result": $text}), 'is passed on as it is';
	is $answer->{headers}{'content-type'}, 'application/json; charset=utf-8', 'as JSON';
}
{
	my $body = AbxServer::encode_json({ bytes => 50_000_000 });
	my $answer = $server->raw("POST /commands/big HTTP/1.0\r\nHost: x\r\nX-Access-Token: t0p\r\nContent-Length: " . length($body) . "\r\n\r\n$body");
	my ($head, $content) = split /\r\n\r\n/, $answer, 2;
	like $head, qr/Content-Length: 50000014/, 'a result of 50 MB';
	is length $content, 50_000_014, 'comes whole';
}
{
	my $answer = $server->run('fail', { status => 418, error => "no \x{e9}" . 'x' x 2000, type => 'TeapotError', code => 'teapot' });
	is $answer->{status}, 418, 'a failure has the status of the worker';
	is_deeply $answer->{json}, { error => "no \x{e9}" . 'x' x 2000, type => 'TeapotError', code => 'teapot' }, 'and its words, however long';
	$answer = $server->run('fail', { status => 500, error => '', type => 'ValueError' });
	is_deeply $answer->{json}, { error => '', type => 'ValueError' }, 'an empty message is one';
	for my $failure ({ status => 200, error => 'x', type => 'X' }, { status => 500, type => 'X' }, { status => 500, error => 'x' }, {}) {
		like $server->run('fail', $failure)->{json}{error}, qr/broke the protocol/, 'a failure that is none: ' . AbxServer::encode_json($failure);
	}
}
for my $case (['00000000 58 000000', 'an unknown kind'], ['00000000 54 000000', 'another unknown kind'], ['01000000 5a 000000 00', 'an end with something in it'],
	      ['ffffffff 46 000000', 'a failure of 4 GiB'], ['02000000 52 000001 7b7d', 'padding that is not zero'], ['02000000 46 000000 7b5d', 'no JSON'],
	      ['00000000 52 000000', 'a result of nothing'], ['02000000 48 000000 7b7d', 'a head'], ['474554202f20485454502f312e310d0a', 'another protocol']) {
	my ($hex, $what) = @$case;
	(my $bytes = $hex) =~ tr/ //d;
	my $answer = $server->run('garbage', { hex => $bytes }, headers => { 'X-Request-Id' => 'garbage-1' });
	is $answer->{status}, 500, "nonsense: $what";
	is $answer->{json}{type}, 'RuntimeError', 'is an error of the server';
	like $answer->{json}{error}, qr/worker of commands\.py broke the protocol: .*\(request garbage-1\)/, 'that says whose';
}
ok AbxServer::wait_for(sub { grep({ $_ eq 'garbage closed' } $server->lines('events')) == 9 }), 'each such call was given up';
is $server->run('echo', { after => 1 })->{json}{result}{after}, 1, 'and the next one is served';

# ---- scopes, time, departures

{
	my $answer = $server->run('secret', {}, no_token => 1, headers => { 'X-Access-Token' => 'pl4in' });
	is $answer->{status}, 403, 'a command without its scope';
	is $answer->{json}{code}, 'missing_scope', 'is refused';
	is $server->run('secret', {}, no_token => 1, headers => { 'X-Access-Token' => 's3cret' })->{json}{result}, 'told', 'with it, it runs';
}
{
	my $socket = $server->connect;
	print $socket "POST /commands/hang HTTP/1.1\r\nHost: x\r\nX-Access-Token: t0p\r\nContent-Length: 2\r\n\r\n{}";
	ok AbxServer::wait_for(sub { grep { $_ eq 'hang began' } $server->lines('events') }), 'a call that does not end';
	close $socket;
	ok AbxServer::wait_for(sub { grep { $_ eq 'hang closed' } $server->lines('events') }), 'ends when its caller leaves';
}
is $server->stop, 0, 'the server stops';

# ---- the time, and calls that nobody takes

$server = FakeWorker->start(table => { commands => [map({ FakeWorker::command($_) } qw(echo hang)), FakeWorker::command('hang2', timeout => 0.5)] },
	env => { ABX_SERVER_POLICY => '{"endpoints": {"commands_run": {"limits": {"timeout_seconds": 1}}}}' });
{
	my $answer = $server->run('hang');
	is $answer->{status}, 500, 'the time of a call is up';
	is_deeply $answer->{json}, { error => q(Command 'hang' timed out after 1s: the worker was still running it), type => 'TimeoutError' }, 'with a typed error';
	ok AbxServer::wait_for(sub { grep { $_ eq 'hang closed' } $server->lines('events') }), 'and the worker sees the end';
	is $server->run('hang2')->{json}{error}, q(Command 'hang2' timed out after 0.5s: the worker was still running it), 'a command may have less time';
	$server->tell(deaf => '');
	# One call may still be waited for by the thread that has looked before.
	$server->run('echo', {});
	$answer = $server->run('echo', {});
	is_deeply $answer->{json}, { error => q(Command 'echo' timed out after 1s: the worker had not taken it yet), type => 'TimeoutError' }, 'a call that no thread takes';
	$server->tell(deaf => undef);
	is $server->run('echo', { a => 1 })->{json}{result}{a}, 1, 'what was given up is not in the way';
}
is $server->stop, 0, 'the server stops';

# ---- with other commands, and confinement

$server = FakeWorker->start(table => { commands => [FakeWorker::command('echo')] },
	env => { ABX_SERVER_POLICY => '{"endpoints": {"commands_run": {"confine": {"network": false}}}}' });
is $server->run('echo')->{status}, 403, 'where the policy confines what commands start, one that starts nothing is refused';
is $server->stop, 0, 'the server stops';
{
	my $broken = FakeWorker->prepare(table => { commands => [FakeWorker::command('twice')] });
	AbxServer::spew("$broken->{commands}/twice.json", '{"name": "twice", "exec": ["/bin/true"]}');
	my ($status, $out, $err) = $broken->run_abxd('--foreground', '--port', '0');
	is $status, 78, 'no start: a manifest has the name of a command of the code';
	like $err, qr/the command 'twice' is defined twice/, 'says why';
}

# ---- as many as there may be

$server = FakeWorker->start(table => { commands => [map { FakeWorker::command($_) } qw(echo hang)] });
{
	my @sockets = map { $server->connect } 1 .. 128;
	print $_ "POST /commands/hang HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}" for @sockets;
	ok AbxServer::wait_for(sub { grep({ $_ eq 'hang began' } $server->lines('events')) == 128 }), '128 calls at a time';
	my $answer = $server->run('echo');
	is $answer->{status}, 429, 'one more is refused';
	is $answer->{json}{type}, 'ResourceError', 'as a table that is full';
	is $server->get('/health')->{status}, 200, 'the server is there';
	is $server->get('/commands')->{status}, 200, 'and so is the group';
	close $_ for @sockets;
	ok AbxServer::wait_for(sub { $server->run('echo')->{status} == 200 }), 'when they leave there is room';
}
is $server->stop, 0, 'the server stops';

done_testing;
