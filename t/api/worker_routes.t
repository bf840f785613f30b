# Routes of a template's own code: rows among the server's, in every respect.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::More;

use FakeWorker;

plan skip_all => 'python3 is not there' unless FakeWorker::available();

sub route { return FakeWorker::route(@_) }

my ($yes, $no) = (JSON::PP::true, JSON::PP::false);
my @routes = (
	route('GET', '/hello/{name}', summary => 'Say hello.'), route('POST', '/hello/{name}'), route('GET', '/hello/you'), route('DELETE', '/things/{a}/{b}'),
	route('GET', '/files/mine', group => 'file_ops'), route('GET', '/files/{x}'), route('POST', '/process/{p}', group => 'process'), route('GET', '/process/{p}/{q}'),
	route('GET', '/open', auth_required => $no), route('POST', '/open', auth_required => $no), route('GET', '/events', streaming => $yes),
	route('GET', '/web/x', group => 'browser'), route('GET', '/mine', id => 'my_route', scopes => ['mine:read']), route('GET', '/'), route('GET', '/off'),
	route('GET', '/rated', auth_required => $no), route('GET', '/health/deep', group => 'core'), route('GET', "/odd\$(a)+*.b'c"),
);
my $policy = AbxServer::encode_json({
	endpoints => { 'GET /off' => { enabled => $no }, 'GET /rated' => { limits => { rate => '2/d' } }, 'my_route' => { limits => { timeout_seconds => 7 } },
		       'GET /hello/you' => { scopes => ['you'] }, 'GET /nowhere' => { enabled => $no } },
	groups => { process => $no },
	identities => [{ id => 'reader', token_env => 'READER_TOKEN', scopes => ['mine:*'] }],
});

sub start {
	my (%arg) = @_;

	return FakeWorker->start(table => { commands => [FakeWorker::command('echo')], routes => \@routes },
		env => { ABX_SERVER_POLICY => $policy, ABX_SERVER_TOKEN => 't0p', READER_TOKEN => 'r3ader', %{ $arg{env} || {} } }, token => 't0p');
}

my $server = start();

sub heard {
	my ($answer) = @_;

	is $answer->{status}, 201, 'the route answers' or diag $answer->{content};
	return $answer->{json}{question};
}

# ---- what a function hears

{
	my $answer = $server->get('/hello/A%20d%C3%A9?x=1&y=a+b%26&x%5B%5D=1&x%5B%5D=2', headers => { 'X-Request-Id' => 'r-1', 'X-Some-Header' => 'v', Cookie => 'a=b' });
	my $question = heard($answer);
	my %headers = map { @$_ } @{ delete $question->{headers} };
	is_deeply $question, { kind => 'route', id => 'GET /hello/{name}', method => 'GET', path => '/hello/A%20d%C3%A9', path_params => { name => "A d\x{e9}" },
			       query => [['x', '1'], ['y', 'a b&'], ['x[]', '1'], ['x[]', '2']], remote => '127.0.0.1', request_id => 'r-1',
			       identity => { id => 'admin', scopes => ['*'] } }, 'a request';
	is $headers{'X-Some-Header'}, 'v', 'a header';
	is $headers{Cookie}, 'a=b', 'another';
	ok !exists $headers{'X-Access-Token'}, 'not the credential';
	is $answer->{headers}{'x-mine'}, 'yes', 'a header of the answer';
	is $answer->{headers}{'content-type'}, 'application/json; charset=utf-8', 'its type is JSON';
	is $answer->{headers}{'cache-control'}, 'no-store', 'as all answers it is not to be stored';
	ok !exists $answer->{headers}{'x-sendfile'}, 'some headers are none of its business';
	is $server->get('/hello/x?type=text%2Fplain')->{headers}{'content-type'}, 'text/plain', 'another type';
	my $body = '{ "a": "\u00e9", "b": [1.50] }';
	$answer = $server->post('/hello/x', $body);
	heard($answer);
	is $answer->{json}{body}, $body, 'a body arrives as it was sent';
	is $server->post('/hello/x', '[1]')->{status}, 400, 'it has to be an object';
	is_deeply heard($server->delete('/things/1/2'))->{path_params}, { a => '1', b => '2' }, 'two parameters';
	is $server->get('/hello/x?a=1&a=2')->{json}{code}, 'duplicate_parameter', 'a repeated parameter';
	my $bearer = heard($server->get('/hello/x', no_token => 1, headers => { Authorization => 'Bearer t0p', 'X-Access-Token' => 'the-gateways' }));
	ok !grep({ $_->[0] =~ /token|authorization/i } @{ $bearer->{headers} }), 'no credential either way';
}

# ---- which route

is heard($server->get('/hello/x/'))->{id}, 'GET /hello/{name}', 'a trailing slash';
is heard($server->get('/'))->{id}, 'GET /', 'the root';
is heard($server->get('/files/mine'))->{id}, 'GET /files/mine', 'below the prefix of another group';
is heard($server->get('/files/yours'))->{id}, 'GET /files/{x}', 'a parameter there';
is heard($server->get('/health/deep'))->{id}, 'GET /health/deep', 'in core';
is heard($server->get("/odd\$(a)+*.b'c"))->{id}, "GET /odd\$(a)+*.b'c", 'characters that patterns have for themselves';
is $server->get('/files/list?path=.')->{status}, 200, 'a built-in literal beats a parameter';
is $server->get('/files/list/?path=.')->{status}, 200, 'with a slash behind it as well';
is $server->get('/files/search')->{status}, 405, 'whatever its method';
is $server->get('/files/%6cist?path=.')->{json}{error}, 'Not found: /files/%6cist', 'an encoded literal is neither';
is $server->get('/hello/a%2Fb')->{status}, 404, 'a slash in a parameter';
is $server->get('/hello/')->{status}, 404, 'an empty parameter';
is $server->get('/nowhere')->{json}{error}, 'Not found: /nowhere', 'another path';
for my $case (['DELETE', '/hello/x', 'GET, POST'], ['PUT', '/hello/you', 'GET'], ['HEAD', '/hello/x', 'GET, POST'], ['DELETE', '/files/mine', 'GET'],
	      ['POST', '/files/list', 'GET'], ['DELETE', '/process/1', 'GET, POST'], ['POST', '/', 'GET'], ['GET', '/things/1/2', 'DELETE']) {
	my ($method, $path, $allow) = @$case;
	my $answer = $server->request($method, $path, $method eq 'POST' ? (content => '{}') : ());
	is $answer->{status}, 405, "$method $path";
	is $answer->{headers}{allow}, $allow, "allowed: $allow";
}
{
	my $answer = AbxServer::parse_response($server->raw("POST /hello/bare HTTP/1.0\r\nHost: x\r\nX-Access-Token: t0p\r\n\r\n"));
	is $answer->{status}, 201, 'a POST without a length';
	is $answer->{json}{question}{path_params}{name}, 'bare', 'goes to the worker too';
}

# ---- the policy

{
	my $answer = $server->get('/off');
	is_deeply $answer->{json}, { error => "Endpoint 'GET /off' is disabled: rule 'policy:endpoints.GET /off' turns it off", type => 'ValueError', code => 'endpoint_disabled',
				     endpoint => 'GET /off', rule => 'policy:endpoints.GET /off' }, 'a route that the policy turns off';
	is $answer->{status}, 404, 'is not there';
	is $server->get('/web/x')->{json}{rule}, 'default:opt-in:browser', 'one of an opt-in group';
	is $server->post('/process/1', {})->{json}{rule}, 'policy:groups.process', 'one of a group that is off';
	is heard($server->get('/process/1/2'))->{id}, 'GET /process/{p}/{q}', 'below the prefix of a group that is off';
	my %reader = (no_token => 1, headers => { 'X-Access-Token' => 'r3ader' });
	is heard($server->get('/mine', %reader))->{identity}{id}, 'reader', 'a scope of the route is held';
	$answer = $server->get('/hello/you', %reader);
	is $answer->{json}{code}, 'missing_scope', 'one of the policy is not';
	is $answer->{json}{rule}, 'policy:endpoints.GET /hello/you', 'and the rule is named';
	is $server->get('/hello/x', no_token => 1)->{status}, 401, 'a credential is asked for';
}
{
	my $question = heard($server->get('/open', no_token => 1));
	is $question->{identity}, undef, 'without a credential, where none is asked for, nobody is the caller';
	heard($server->post('/open', '{}', no_token => 1));
	my %headers = map { @$_ } @{ heard($server->get('/open', no_token => 1, headers => { Authorization => 'Bearer a-hook', 'X-Access-Token' => 'x' }))->{headers} };
	is $headers{Authorization}, 'Bearer a-hook', 'another credential is the business of the code';
	%headers = map { @$_ } @{ heard($server->get('/open'))->{headers} };
	ok !exists $headers{'X-Access-Token'}, 'one of ours is not';
	is $server->get('/rated', no_token => 1)->{status}, 201, 'call 1 of 2';
	is $server->get('/rated')->{status}, 201, 'call 2 of 2';
	my $answer = $server->get('/rated', no_token => 1);
	is $answer->{status}, 429, 'nobody has a rate, too';
	ok $answer->{headers}{'retry-after'}, 'that says when again';
}

# ---- what core tells

{
	my $all = $server->get('/capabilities')->{json};
	my $state = $all->{endpoints}{'GET /hello/{name}'};
	is_deeply $state, { method => 'GET', path => '/hello/{name}', group => 'commands', summary => 'Say hello.', streaming => $no, enabled => $yes, allowed => $yes, reason => undef,
			    rule => undef, scopes => [], limits => { timeout_seconds => 300 },
			    params => { name => { type => 'string', required => $yes, default => undef } } }, 'an endpoint like others';
	is $all->{endpoints}{my_route}{limits}{timeout_seconds}, 7, 'with limits of the policy';
	is_deeply $all->{endpoints}{my_route}{scopes}, ['mine:read'], 'and scopes of its own';
	is $all->{endpoints}{'GET /events'}{streaming}, $yes, 'a stream';
	is $all->{endpoints}{'GET /off'}{rule}, 'policy:endpoints.GET /off', 'one that is off';
	is_deeply $all->{group_summary}{file_ops}, { enabled => 13, total => 13 }, 'it counts in its group';
	is_deeply $all->{group_summary}{browser}, { enabled => 0, total => 8 }, 'where that is off, too';
	is_deeply $all->{group_summary}{core}, { enabled => 4, total => 4 }, 'and in core';
	ok grep({ /GET \/nowhere': no route of your own/ } @{ $all->{warnings} }), 'an id that no route has is warned of' or diag explain $all->{warnings};
	ok !grep({ /GET \/off/ } @{ $all->{warnings} }), 'one that a route has is not';
	ok !grep({ $_->{name} =~ /hello/ } @{ $server->get('/commands')->{json}{commands} }), 'it is no command';
	is_deeply $server->post('/capabilities/check', { endpoint => 'GET /files/{x}' })->{json}, { endpoint => 'GET /files/{x}', allowed => $yes, code => undef, reason => undef },
		'a check';
	is $server->post('/capabilities/check', { endpoint => 'GET /off' })->{json}{rule}, 'policy:endpoints.GET /off', 'of one that is off';
	is $server->post('/capabilities/check', { endpoint => 'GET /nowhere' })->{json}{code}, 'unknown_endpoint', 'of none';
}

# ---- answers that are none

is_deeply $server->get('/hello/x?mode=fail')->{json}, { error => 'no coffee', type => 'TeapotError', code => 'teapot' }, 'a failure';
is $server->get('/hello/x?mode=fail')->{status}, 418, 'has its status';
like $server->get('/hello/x?mode=header')->{json}{error}, qr/broke the protocol: a header/, 'a header that would be two';
{
	my $answer = $server->get('/hello/x?mode=short');
	is $answer->{status}, 500, 'a body that is shorter than announced';
	is $answer->{json}{type}, 'RuntimeError', 'is no whole answer';
}

# ---- streams

sub stream {
	my ($query) = @_;
	my $socket = $server->connect;

	print $socket "GET /events?mode=stream$query HTTP/1.1\r\nHost: x\r\nX-Access-Token: t0p\r\n\r\n";
	return $socket;
}
{
	my $answer = $server->get('/events?mode=stream&count=3');
	is $answer->{headers}{'content-type'}, 'text/event-stream', 'a stream';
	is $answer->{headers}{'x-accel-buffering'}, 'no', 'that is not to be buffered';
	is $answer->{content}, join('', map { "event: tick\ndata: {\"n\": $_}\n\n" } 0 .. 2), 'has its events';
	my $socket = stream('&count=2&end=no');
	my $text = AbxServer::read_until($socket);
	like $text, qr/"n": 1/, 'a stream whose worker goes without an end';
	unlike $text, qr/\r\n0\r\n\r\n\z/, 'is broken off';
	$socket = stream('');
	like AbxServer::read_until($socket, sub { $_[0] =~ /data: / }), qr/event: tick\ndata: \{"n": 0\}\n\n/, 'an event comes at once';
	ok !grep({ $_ eq 'stream closed' } $server->lines('events')), 'the call goes on';
	close $socket;
	ok AbxServer::wait_for(sub { grep { $_ eq 'stream closed' } $server->lines('events') }), 'until the client leaves';
}
{
	my $socket = stream('&count=1&end=silent');
	AbxServer::read_until($socket, sub { $_[0] =~ /data: / });
	kill 'TERM', $server->pid;
	my $text = AbxServer::read_until($socket);
	like $text, qr/event: error\ndata: \{"error": "The server is stopping", "type": "RuntimeError"\}\n\n/, 'the end of the server is told';
	is $server->stop, 0, 'the server stops';
}

# ---- with a mount prefix

$server = start(env => { ABX_MOUNT_PREFIX => '/a/b-c' });
is heard($server->get('/hello/x'))->{path}, '/hello/x', 'a route below a mount prefix';
is heard($server->get('/files/mine'))->{id}, 'GET /files/mine', 'below that of a group';
is $server->get('/files/list?path=.')->{status}, 200, 'a built-in beside it';
is $server->stop, 0, 'the server stops';

# ---- with somebody else's web server

$server = FakeWorker->start(table => { routes => \@routes }, args => ['--no-lighttpd']);
like AbxServer::slurp($server->{run} . '/lighttpd/end.conf'), qr/request-method.*hello/s, 'its include file has the routes';
is $server->stop, 0, 'the server stops';

done_testing;
