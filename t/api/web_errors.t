# Everything that the web server itself would answer is JSON of the documented shape; bodies at the limit; calls without a length.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use AbxServer;
use Test::More;

my $LIMIT = 10 * 1024 * 1024;
my $server = AbxServer->start;

# An answer that is an error of this status, as JSON with these members only.
sub is_error {
	my ($answer, $status, $type, $code, $name) = @_;

	is $answer->{status}, $status, "$name: $status";
	like $answer->{headers}{'content-type'}, qr{\Aapplication/json}, "$name: JSON";
	is ref $answer->{json}, 'HASH', "$name: an object";
	ok length $answer->{json}{error}, "$name: a message";
	is $answer->{json}{type}, $type, "$name: type";
	is $answer->{json}{code}, $code, "$name: code";
	ok $answer->{headers}{'x-request-id'}, "$name: a request id";
}

sub raw_error {
	my ($bytes, @want) = @_;

	is_error(AbxServer::parse_response($server->raw($bytes)), @want);
}

is_error($server->get('/nowhere'), 404, 'ValueError', undef, 'unknown path');
is $server->get('/nowhere/%41?x=1')->{json}{error}, 'Not found: /nowhere/%41', 'the path as it was sent, without the query';
is $server->get($_)->{json}{error}, "Not found: $_", "$_: no parameter is like that" for '/process/%ff', '/pty/sessions/%ff%fe', '/process/%00', '/process/a%2Fb';
is $server->post("/commands/%ff", '{}')->{json}{error}, 'Not found: /commands/%ff', 'nor a name of a command';
my $long = '/' . 'x' x 20000;
is $server->get($long)->{json}{error}, "Not found: $long", 'a long path is told whole';
is_error($server->request('PUT', '/health'), 405, 'ValueError', 'method_not_allowed', 'another method');
is $server->request('PUT', '/health')->{headers}{allow}, 'GET', 'Allow';
is $server->request('OPTIONS', '/upload')->{headers}{allow}, 'POST', 'Allow on OPTIONS';

raw_error("GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400, 'ValueError', undef, 'two lengths');
raw_error("POST /shell HTTP/1.1\r\nHost: x\r\nContent-Length: abc\r\n\r\n", 400, 'ValueError', undef, 'a length that is no number');
raw_error("POST /shell HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", 400, 'ValueError', undef, 'a negative length');
raw_error("POST /shell HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, 'ValueError', undef, 'length and chunked');
raw_error("POST /shell HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400, 'ValueError', undef, 'a bad chunk');
raw_error("GET /health HTTP/1.1\r\n\r\n", 400, 'ValueError', undef, 'no Host');
raw_error("GET /he\x01alth HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 404, 'ValueError', undef, 'a control character in the path');
raw_error("FROB /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 501, 'RuntimeError', undef, 'an unknown method');
raw_error("GET /health HTTP/3.0\r\nHost: x\r\nConnection: close\r\n\r\n", 505, 'RuntimeError', undef, 'another version');
raw_error("GET /health HTTP/1.1\r\nHost: x\r\nX: " . 'y' x 40000 . "\r\n\r\n", 431, 'ValueError', undef, 'a large header');

# A JSON body of exactly `$size` bytes that is a fine call of /shell.
sub body_of_size {
	my ($size) = @_;
	my $call = '{"command": "true", "x": "';

	return $call . 'y' x ($size - length($call) - 2) . '"}';
}

sub chunked {
	my ($body) = @_;
	my $out = '';

	while (length $body) {
		my $piece = substr $body, 0, 1 << 20, '';
		$out .= sprintf "%x\r\n%s\r\n", length $piece, $piece;
	}
	return "$out" . "0\r\n\r\n";
}

for my $extra (0, 1) {
	my $body = body_of_size($LIMIT + $extra);
	my $name = $extra ? 'one byte more than 10 MiB' : 'exactly 10 MiB';
	my @answers = ($server->post('/shell', $body),
		       AbxServer::parse_response($server->raw("POST /shell HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
							       . "Transfer-Encoding: chunked\r\n\r\n" . chunked($body))));
	for my $how (qw(length chunked)) {
		my $answer = shift @answers;
		if ($extra) {
			is_error($answer, 413, 'ValueError', 'payload_too_large', "$name, by $how");
		} else {
			is $answer->{status}, 200, "$name, by $how";
			is $answer->{json}{exit_code}, 0, 'and it ran';
		}
	}
}
my $announced = $server->raw("POST /upload HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 99999999999\r\n\r\n");
$announced =~ s{\AHTTP/1\.1 100 Continue\r\n\r\n}{};
is_error(AbxServer::parse_response($announced), 413, 'ValueError', 'payload_too_large', 'a body that is only announced');

# POST without a length: an empty body. curl -X POST does so.
sub without_length {
	my ($path, $more) = @_;

	return AbxServer::parse_response($server->raw("POST $path HTTP/1.1\r\nHost: x\r\n" . ($more || '') . "\r\n"));
}
my $answer = without_length('/commands/runshell', "X-Request-Id: relayed\r\n");
is $answer->{status}, 400, 'a named command without a length';
is $answer->{json}{error}, 'cmd: is required', 'gets the error of its group';
is $answer->{headers}{'x-request-id'}, 'relayed', 'and keeps its request id';
is without_length('/capabilities/check')->{json}{error}, 'endpoint: is required', 'core answers its own';
is without_length('/nowhere')->{status}, 404, 'an unknown path';
is without_length('/health')->{status}, 405, 'a path that takes no POST';
is without_length('/commands/nothing')->{json}{type}, 'ValueError', 'an unknown command';

# Bodies that are no JSON objects, with the position.
for my $case (['[]', 'must be a JSON object, not array'], ['1', 'must be a JSON object'], ['"x"', 'must be a JSON object'], ['null', 'must be a JSON object'],
	      ['{', 'line 1 column'], ['{"a": 1, "a": 2}', '(?i:duplicate)'], ["{\"a\": \"\xff\"}", 'UTF-8'], ['{"a": NaN}', 'line 1'], ['{"a": Infinity}', 'line 1'],
	      ['{"a": 1e999}', 'line 1'], ['{"a": "\\ud800"}', 'line 1'], ['{"a": 18446744073709551616}', 'line 1'], ['{} x', 'line 1'], ["{'a': 1}", 'line 1']) {
	my ($body, $message) = @$case;
	my $got = $server->post('/shell', $body);
	is $got->{status}, 400, "body $body: 400";
	is $got->{json}{type}, 'ValueError', 'ValueError';
	like $got->{json}{error}, qr/$message/, 'the message says where';
}
is $server->post('/shell', '')->{json}{error}, 'command: is required', 'an empty body is {}';
is $server->post('/shell', '{"command": "true"}', headers => { 'Content-Type' => 'text/plain' })->{status}, 200, 'the content type is not enforced';

# A body that the web server finds no room for, where a small file system can be had.
my $small = AbxServer::temp_dir();
SKIP: {
	skip 'no file system can be mounted', 9 if system("mount -t tmpfs -o size=1m tmpfs $small 2>/dev/null") != 0;
	my $full = AbxServer->start(env => { ABX_SPOOL_DIR => "$small" });
	my $got = $full->post('/shell', '{"command": "true", "x": "' . 'x' x 4_000_000 . '"}');
	is_error($got, 507, 'OSError', undef, 'a body that does not fit into the spool directory');
	like $got->{json}{error}, qr/spool directory/, 'which is said';
	is $full->post('/shell', { command => 'true' })->{status}, 200, 'a small one needs none';
	$full->stop;
	system "umount $small";
}

done_testing;
