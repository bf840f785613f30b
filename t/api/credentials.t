# Credentials through the web server: both headers, duplicates, look-alikes, and a gateway's own token.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use AbxServer;
use Test::More;

my $server = AbxServer->start(env => { ABX_SERVER_TOKEN => 'tok' });

# The status of a call with these header lines.
sub status {
	my (@lines) = @_;
	my $answer = AbxServer::parse_response($server->raw(join "\r\n", 'GET /commands HTTP/1.1', 'Host: x', 'Connection: close', @lines, '', ''));

	return $answer->{status};
}

my @cases = (
	[401, 'none'],
	[200, 'X-Access-Token', 'X-Access-Token: tok'],
	[200, 'in other letters', 'x-access-TOKEN: tok'],
	[200, 'bearer', 'Authorization: Bearer tok'],
	[200, 'bearer in other letters', 'authorization: BEARER tok'],
	[401, 'a wrong token', 'X-Access-Token: tok2'],
	[401, 'a wrong bearer', 'Authorization: Bearer tok2'],
	[401, 'an empty token', 'X-Access-Token: '],
	[401, 'another scheme', 'Authorization: Basic tok'],
	[200, 'the same token twice', 'X-Access-Token: tok', 'X-Access-Token: tok'],
	[400, 'two tokens', 'X-Access-Token: tok', 'X-Access-Token: other'],
	[400, 'two tokens, the valid one last', 'X-Access-Token: other', 'X-Access-Token: tok'],
	[400, 'two bearers', 'Authorization: Bearer tok', 'Authorization: Bearer other'],
	[200, 'a gateway\'s token beside our bearer', 'X-Access-Token: gateway', 'Authorization: Bearer tok'],
	[200, 'a gateway\'s bearer beside our token', 'X-Access-Token: tok', 'Authorization: Bearer gateway'],
	[401, 'a blank inside is part of the value', 'X-Access-Token: tok tok'],
	[401, 'a scheme does not belong here', 'X-Access-Token: Bearer tok'],
	[200, 'a gateway\'s token with a blank beside our bearer', 'X-Access-Token: gateway token', 'Authorization: Bearer tok'],
	[200, 'blanks around it', 'X-Access-Token: 	tok  '],
	[400, 'many values, the last of which differs', ('X-Access-Token: tok') x 12, 'X-Access-Token: other'],
	[401, 'X_Access_Token', 'X_Access_Token: tok'],
	[401, 'X-Access_Token', 'X-Access_Token: tok'],
	[401, 'X.Access.Token', 'X.Access.Token: tok'],
	[200, 'a look-alike beside the header', 'X_Access_Token: junk', 'X-Access-Token: tok'],
	[200, 'a look-alike behind the header', 'X-Access-Token: tok', 'X_Access-Token: junk'],
	[401, 'a look-alike with the token beside a wrong header', 'X-Access-Token: junk', 'X_Access_Token: tok'],
);
for my $case (@cases) {
	my ($status, $name, @lines) = @$case;
	is status(@lines), $status, $name;
}
is $server->get('/health')->{status}, 200, 'health needs none';
my $refused = $server->get('/commands');
is $refused->{content}, '{"error": "unauthorized", "type": "AuthError"}', 'the body of 401';
is $refused->{headers}{'www-authenticate'}, 'Bearer', 'and how to do better';
is $server->get('/nowhere')->{status}, 404, 'a path that does not exist needs none to be told so';
is $server->post('/upload', 'not json')->{status}, 401, 'a body is not looked at before';
is AbxServer::parse_response($server->raw("GET /commands HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Access-Token: a\r\nX-Access-Token: b\r\n\r\n"))->{json}{code},
	'ambiguous_credentials', 'the code of two tokens';
my $env = { ABX_SERVER_TOKEN => 'tok', ABX_ALLOWED_ORIGINS => 'https://app.example' };
my $browser = AbxServer->start(env => $env, token => 'tok');
my $cors = $browser->get('/commands', headers => { Origin => 'https://app.example' });
is $cors->{headers}{'access-control-allow-origin'}, 'https://app.example', 'a listed origin';
my $preflight = $browser->request('OPTIONS', '/commands', no_token => 1, headers => { Origin => 'https://app.example', 'Access-Control-Request-Method' => 'GET' });
is $preflight->{status}, 204, 'its preflight needs no token';
like $preflight->{headers}{'access-control-allow-headers'}, qr/X-Access-Token/, 'and allows ours';
ok !exists $browser->get('/commands', headers => { Origin => 'https://other.example' })->{headers}{'access-control-allow-origin'}, 'another origin gets no CORS headers';
my %page = (headers => { Origin => 'https://app.example' });
for my $case ([200, '/health'], [404, '/nowhere'], [405, '/shell'], [400, '/files/stat'], [401, '/commands']) {
	my ($status, $path) = @$case;
	my $answer = $browser->get($path, %page, no_token => $status == 401);
	is $answer->{status}, $status, "$path of a listed page";
	is $answer->{headers}{'access-control-allow-origin'}, 'https://app.example', 'which may read the answer';
}
my $large = AbxServer::parse_response($browser->raw("POST /shell HTTP/1.1\r\nHost: x\r\nOrigin: https://app.example\r\nContent-Length: 99999999\r\n\r\n"));
is $large->{status}, 413, 'what the web server refuses';
is $large->{headers}{'access-control-allow-origin'}, 'https://app.example', 'may be read, too';
my $local = AbxServer->start;
my $twice = "GET /commands HTTP/1.1\r\nHost: h:1\r\nOrigin: http://h:1\r\nOrigin: http://evil.example\r\nConnection: close\r\n\r\n";
is AbxServer::parse_response($local->raw($twice))->{json}{code}, 'origin_not_allowed', 'two origins, the first of which is the server\'s own';

done_testing;
