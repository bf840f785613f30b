# The WebSocket of terminals: who gets in, with what code the others are closed, and what may be sent.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use AbxServer;
use AbxWebSocket;
use Test::More;

my $secret = 'a-secret-token';
my $server = AbxServer->start(env => { ABX_SERVER_TOKEN => $secret, ABX_LOG_LEVEL => 'debug' }, token => $secret);
my $id = AbxWebSocket::new_session($server);
my $port = AbxWebSocket::pty_port($server);

# Connect, and tell what comes of it: "started", a close code and its reason, or an HTTP status.
sub outcome {
	my ($on, %arg) = @_;
	my $ws = AbxWebSocket->connect(path => "/pty?session_id=$id", %arg, port => $on);

	return $ws->status if $ws->status != 101;
	my $first = $ws->next_json;
	$ws->end;
	return $first ? $first->{event} : $ws->close_code . ' ' . $ws->close_reason;
}

sub same_on_both {
	my ($expected, $name, %arg) = @_;

	is outcome($port, %arg), $expected, $name;
	is outcome($server->port, %arg), $expected, "$name, through the web server";
}

# Credentials.
same_on_both('started', 'X-Access-Token', headers => { 'X-Access-Token' => $secret });
same_on_both('started', 'Authorization', headers => { Authorization => "Bearer $secret" });
same_on_both('started', 'in any case of letters', lines => ["aUTHORIZATION: bEARER $secret"]);
same_on_both('started', '?token=', path => "/pty?session_id=$id&token=$secret");
same_on_both('started', '?token= with escapes', path => "/pty?token=a%2Dsecret%2dtoken&session_id=$id");
same_on_both('started', 'a gateway\'s token beside ours', headers => { 'X-Access-Token' => 'gateway', Authorization => "Bearer $secret" });
same_on_both('started', 'a gateway\'s token beside ?token=', path => "/pty?session_id=$id&token=$secret", headers => { 'X-Access-Token' => 'gateway' });
same_on_both('started', 'the same token twice', lines => ["X-Access-Token: $secret", "X-Access-Token: $secret"]);
same_on_both('4001 unauthorized', 'no credential');
same_on_both('4001 unauthorized', 'a wrong token', headers => { 'X-Access-Token' => "$secret." });
same_on_both('4001 unauthorized', 'a wrong ?token=', path => "/pty?session_id=$id&token=x");
same_on_both('4001 unauthorized', 'an empty ?token=', path => "/pty?session_id=$id&token=");
same_on_both('4001 unauthorized', 'a token with something behind a NUL', path => "/pty?session_id=$id&token=$secret%00x");
same_on_both('4001 unauthorized', 'another scheme', headers => { Authorization => "Basic $secret" });
same_on_both('4001 unauthorized', 'a name that only looks alike', lines => ["X_Access_Token: $secret"]);
same_on_both('4001 ambiguous_credentials', 'two tokens', lines => ["X-Access-Token: $secret", 'X-Access-Token: other']);
same_on_both('4001 ambiguous_credentials', 'in the other order', lines => ['X-Access-Token: other', "X-Access-Token: $secret"]);
same_on_both('4001 ambiguous_credentials', 'two bearers', lines => ["Authorization: Bearer $secret", 'Authorization: Bearer other']);
same_on_both('4001 unauthorized', 'credentials come before the session', path => '/pty?session_id=none');

# Sessions.
my %in = (headers => { 'X-Access-Token' => $secret });
same_on_both('4004 unknown session', 'an unknown session', path => '/pty?session_id=0123456789ab', %in);
same_on_both('4004 unknown session', 'no session', path => '/pty', %in);
same_on_both('4004 unknown session', 'a strange id', path => '/pty?session_id=%00%ff', %in);
same_on_both('started', 'a trailing slash', path => "/pty/?session_id=$id", %in);
same_on_both('started', 'unknown parameters are ignored', path => "/pty?x=1&session_id=$id&y", %in);
same_on_both(400, 'a repeated parameter', path => "/pty?session_id=$id&session_id=$id", %in);

# What is no handshake.
sub raw { return AbxWebSocket->connect(port => $port, path => '/', raw => join('', @_)) }

sub is_answered {
	my ($ws, $status, $type, $message, $name) = @_;

	is $ws->status, $status, "$name: $status";
	is $ws->answer->{json}{type}, $type, "$name: $type";
	like $ws->answer->{json}{error}, $message, "$name: message";
	is $ws->answer->{headers}{'content-type'}, 'application/json; charset=utf-8', "$name: JSON";
	is $ws->answer->{headers}{'cache-control'}, 'no-store', "$name: not stored";
}

is_answered(raw("GET /pty HTTP/1.1\r\nHost: x\r\n\r\n"), 426, 'ValueError', qr/WebSocket/, 'a plain GET');
is raw("GET /pty HTTP/1.1\r\nHost: x\r\n\r\n")->answer->{headers}{'sec-websocket-version'}, 13, 'which tells the version';
is_answered(raw("GET /other?x HTTP/1.1\r\nHost: x\r\n\r\n"), 404, 'ValueError', qr{\ANot found: /other\z}, 'another path');
is_answered(raw("GET /pty/sessions HTTP/1.1\r\nHost: x\r\n\r\n"), 404, 'ValueError', qr{\ANot found: /pty/sessions\z}, 'the HTTP side is elsewhere');
is_answered(raw("POST /pty HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"), 405, 'ValueError', qr/GET/, 'another method');
is raw("PUT /pty HTTP/1.1\r\nHost: x\r\n\r\n")->answer->{headers}{allow}, 'GET', 'with Allow';
is_answered(raw("rubbish\r\n\r\n"), 400, 'ValueError', qr/HTTP/, 'no HTTP');
is_answered(raw("\x16\x03\x01\x02\x00\x01\x00\r\n\r\n"), 400, 'ValueError', qr/HTTP/, 'TLS');
is_answered(raw("GET /pty HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n"), 400, 'ValueError', qr/header/, 'a folded header');
is_answered(raw("GET /pty HTTP/1.1\r\nHost : x\r\n\r\n"), 400, 'ValueError', qr/header/, 'a blank before the colon');
is_answered(raw("GET /pty HTTP/1.1\r\nX-Access-Token: a\0b\r\n\r\n"), 400, 'ValueError', qr/header/, 'a NUL in a header');
is_answered(raw("GET /pty HTTP/1.1\nHost: x\r\n\r\n"), 400, 'ValueError', qr/HTTP/, 'a bare line feed');
is_answered(raw("GET /pty HTTP/1.1\r\n" . 'X: ' . 'x' x 40_000), 431, 'ValueError', qr/too large/, 'a head that is too long');
is outcome($port, lines => ['X: ' . 'x' x 30_000], %in), 'started', 'a long one that is not';
for my $bad ("Sec-WebSocket-Version: 12", "Sec-WebSocket-Key: short", "Sec-WebSocket-Key: " . 'x' x 24) {
	my ($name) = $bad =~ /\A([^:]+)/;
	my $head = "GET /pty HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n";
	$head =~ s/^\Q$name\E: .*?\r$/$bad\r/m;
	is raw($head)->status, $name =~ /Version/ ? 426 : 400, $bad;
}
is $server->get('/pty')->{status}, 404, 'a plain GET of /pty on the other port';

# A head in pieces, and one with the first message behind it.
my $slow = AbxWebSocket->connect(port => $port, path => "/pty?session_id=$id", %in, more => AbxWebSocket::frame(1, '{"type": "input", "data": "echo ear$((40+2))ly\n"}'));
ok $slow->expect(qr/ear42ly/), 'a message that comes with the handshake';
my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port);
syswrite $socket, $_ for map { ($_) } split //, "GET /pty HTTP/1.1\r\nHost: x\r\n";
select undef, undef, undef, 0.05;
syswrite $socket, "\r\n";
like AbxServer::read_until($socket), qr/\AHTTP\/1.1 426 /, 'a head byte by byte';

# Origin: with a token no page can do anything without knowing it.
is outcome($port, %in, lines => ['Origin: http://evil.example']), 'started', 'with a token any origin may come';
my $local = AbxServer->start;
my $local_port = AbxWebSocket::pty_port($local);
my $local_id = AbxWebSocket::new_session($local);
sub origin { return outcome($_[0], path => "/pty?session_id=$local_id", headers => { Host => 'box.example:9001' }, lines => [@_[1 .. $#_]]) }
for my $on ($local_port, $local->port) {
	is origin($on), 'started', 'local mode: no origin';
	is origin($on, 'X-Access-Token: a', 'X-Access-Token: b'), 'started', 'credentials are not looked at';
	is origin($on, 'Origin: http://evil.example'), 403, 'a foreign one';
	is origin($on, 'Origin: null'), 403, 'one that is none';
	is origin($on, 'Origin: http://box.example:9001'), 'started', 'the same host and port';
	is origin($on, 'Origin: http://box.example'), 403, 'another port';
}
is origin($local_port, 'Origin: https://front.example', 'X-Forwarded-Host: front.example'), 'started', 'that of a proxy before us';
my $refused = AbxWebSocket->connect(port => $local_port, path => "/pty?session_id=$local_id", headers => { Origin => 'http://evil.example' });
is $refused->answer->{json}{code}, 'origin_not_allowed', 'its code';
is $refused->answer->{json}{type}, 'PermissionError', 'its type';
my $listed = AbxServer->start(env => { ABX_ALLOWED_ORIGINS => 'https://app.example' });
my $listed_id = AbxWebSocket::new_session($listed);
is outcome(AbxWebSocket::pty_port($listed), path => "/pty?session_id=$listed_id", headers => { Origin => 'https://app.example' }), 'started', 'a listed origin';
$listed->stop;

# Messages that are none.
my $ws = AbxWebSocket::watch($server, $id, %in);
sub complaint {
	my ($text, $opcode) = @_;

	$ws->send_frame($opcode || 1, $text);
	my $answer = $ws->next_event or return 'closed with ' . $ws->close_code;
	return join '+', sort(keys %$answer), $answer->{type}, $answer->{error};
}

my %wrong = (
	'{}' => 'type: ', '' => 'type: ', '[]' => 'object', '"x"' => 'object', '{' => 'Invalid JSON', 'null' => 'object', "\xff\xfe" => 'UTF-8',
	'{"type": "input"}' => 'data: ', '{"type": "input", "data": 5}' => 'data: ', '{"type": "output", "data": "x"}' => 'type: ',
	'{"type": 5}' => 'type: ', '{"type": "resize", "cols": 80}' => 'rows: ', '{"type": "resize", "rows": 80}' => 'cols: ',
	'{"type": "resize", "cols": 0, "rows": 1}' => 'cols: ', '{"type": "resize", "cols": 1001, "rows": 1}' => 'cols: ',
	'{"type": "resize", "cols": 1.5, "rows": 1}' => 'cols: ', '{"type": "resize", "cols": "80", "rows": 1}' => 'cols: ',
	'{"type": "resize", "cols": 80, "rows": -1}' => 'rows: ', '{"type": "resize", "cols": 80, "rows": true}' => 'rows: ',
	'{"type": "signal"}' => 'signal: ', '{"type": "signal", "signal": "SIGSTOP"}' => 'signal: ', '{"type": "signal", "signal": 9}' => 'signal: ',
	'{"type": "signal", "signal": "sigint"}' => 'signal: ', '{"type": "input", "type": "input", "data": ""}' => 'twice|duplicate|repeat',
	'{"type": "input", "data": "\ud800"}' => 'JSON', '[' x 600 => 'nest|deep|JSON',
);
like complaint($_), qr/\Aerror\+type\+error\+.*(?:$wrong{$_})/, 'answered: ' . substr $_, 0, 60 for sort keys %wrong;
like complaint('x', 2), qr/text/, 'a binary message';
like complaint('x' x (1 << 20)), qr/JSON/, 'a message of 1 MiB is looked at';
$ws->type("echo st\"\"ill; stty size\n");
like $ws->expect(qr/still\r\n.*?\d+ \d+\r\n/s), qr/still\r\n24 80\r\n/, 'after all this the session is as it was';
my $many = 3000;
$ws->write_all(AbxWebSocket::frame(1, 'x') x $many);
my $errors = 0;
$errors++ while $errors < $many && ($ws->next_event || {})->{type};
is $errors, $many, 'each of many wrong messages is answered';

# Frames.
sub closes_with {
	my ($code, $name, @frames) = @_;
	my $client = AbxWebSocket::watch($server, $id, %in);

	$client->write_all(join '', map { AbxWebSocket::frame(@$_) } @frames);
	is $client->close_code, $code, "$name: $code";
}

closes_with(1009, 'a message over 1 MiB', [1, 'x' x ((1 << 20) + 1)]);
closes_with(1009, 'one in two parts', [1, 'x' x 600_000, continues => 1], [0, 'x' x 600_000]);
closes_with(1009, 'one of 20 MB', [1, 'x' x 20_000_000]);
closes_with(1002, 'reserved bits', [1, '{}', rsv => 4]);
closes_with(1002, 'an unknown opcode', [3, 'x']);
closes_with(1002, 'an unknown control opcode', [11, 'x']);
closes_with(1002, 'a ping in parts', [9, 'x', continues => 1]);
closes_with(1002, 'a part of nothing', [0, 'x']);
closes_with(1002, 'a close code that is none', [8, pack 'n', 999]);
closes_with(1002, 'a frame that is not masked', [1, '{}', unmasked => 1]);
closes_with(1002, 'a long ping', [9, 'x' x 126]);
closes_with(1002, 'half a close code', [8, 'x']);
closes_with(1002, 'a message inside another', [1, '{', continues => 1], [1, '{}']);
closes_with(1000, 'a close', [8, pack 'n', 1000]);
$ws = AbxWebSocket::watch($server, $id, %in);
$ws->write_all(AbxWebSocket::frame(1, '{"type": "input", "da', continues => 1) . AbxWebSocket::frame(9, 'between') .
	AbxWebSocket::frame(0, 'ta": "echo pie$((1+', continues => 1) . AbxWebSocket::frame(0, '1))ces\n"}'));
ok $ws->expect(qr/pie2ces/), 'a message in parts, with a ping between them';
is $server->get("/pty/sessions/$id")->{json}{alive}, JSON::PP::true, 'the session has outlived it all';

unlike $server->log_text, qr/\Q$secret\E|a%2Dsecret/i, 'the token is not in the log';
like $server->log_text, qr/abx-ptyd: 101 .*endpoint=pty_connect identity=admin/, 'who came in is';
like $server->log_text, qr/abx-ptyd: 101 .*error=unauthorized/, 'and who did not';
done_testing;
