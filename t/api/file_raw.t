# Raw bytes: uploads with a length and chunked, downloads with ranges and validators, HEAD, both pairs of endpoints.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use AbxServer;
use Digest::SHA qw(sha256_hex);
use MIME::Base64;
use POSIX qw(mkfifo);
use Test::More;

my $LIMIT = 20_000_000;
my $server = AbxServer->start(env => { ABX_SERVER_TOKEN => 't', ABX_MAX_UPLOAD_SIZE => $LIMIT }, token => 't');
my $base = $server->base;
my %OCTETS = ('Content-Type' => 'application/octet-stream');
my $BIG = join '', map { sha256_hex($_) } 0 .. 175_000;

umask 022;

sub upload {
	my ($query, $bytes, %headers) = @_;

	return $server->request('POST', "/upload?$query", content => $bytes, headers => { %OCTETS, %headers });
}

# A request by hand, its first answer as a hash.
sub by_hand {
	my ($line, $headers, $body) = @_;
	my $socket = $server->connect;

	local $SIG{PIPE} = 'IGNORE';
	syswrite $socket, "$line HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" . join('', map { "$_\r\n" } @$headers) . "\r\n" . ($body || '');
	return AbxServer::parse_response(AbxServer::read_until($socket));
}

sub leftovers {
	opendir my $dir, $base or die $!;
	return [sort grep { /\A\.abx|\.tmp\z/ } readdir $dir];
}

cmp_ok length $BIG, '>', 10_485_760, 'more than JSON could carry';

# Both endpoints, both ways there and back.
for my $pair (['/upload', '/download'], ['/files/upload-stream', '/files/download-stream']) {
	my ($up, $down) = @$pair;

	for my $bytes ('', 'x', "a\0b\r\n\xff", $BIG) {
		my $answer = $server->request('POST', "$up?path=f", content => $bytes, headers => \%OCTETS);
		is_deeply [$answer->{status}, $answer->{json}], [200, { path => "$base/f", bytes => length $bytes }], "$up: " . length($bytes) . ' bytes';
		ok AbxServer::slurp("$base/f") eq $bytes, 'are what is there';
		$answer = $server->get("$down?path=f&raw=1");
		ok $answer->{status} == 200 && $answer->{content} eq $bytes, "$down: they come back";
		is $answer->{headers}{'content-length'}, length $bytes, 'with a length';
		is $answer->{headers}{'content-type'}, 'application/octet-stream', 'and their type';
	}
	my $json = $server->post($up, { path => 'j', content_base64 => 'aGVsbG8=' })->{json};
	is_deeply $json, { path => "$base/j", bytes => 5 }, "$up: as JSON";
	is_deeply $server->get("$down?path=j")->{json},
		{ path => "$base/j", content_base64 => 'aGVsbG8=', $down =~ /stream/ ? (bytes => 5) : () }, "$down: as JSON";
}

# Who says that it is raw.
for my $type ('application/octet-stream; x=y', 'Application/Octet-Stream', 'application/octet-stream ;a') {
	is upload('path=typed', 'raw', 'Content-Type' => $type)->{json}{bytes}, 3, "Content-Type: $type";
}
is upload('path=typed', '{}', 'Content-Type' => 'application/octet-streams')->{status}, 400, 'another type is JSON';
for my $accept ('application/octet-stream', 'text/html, application/octet-stream;q=0.5, */*', 'application/json;q=0.1, application/octet-stream') {
	is $server->get('/download?path=typed', headers => { Accept => $accept })->{content}, 'raw', "Accept: $accept";
}
for my $accept ('*/*', 'application/json', 'application/json, application/octet-stream', 'application/octet-stream;q=0', 'application/octet-streams') {
	is $server->get('/download?path=typed', headers => { Accept => $accept })->{json}{content_base64}, 'cmF3', "Accept: $accept";
}
is $server->get("/download?path=typed&raw=$_")->{content}, 'raw', "raw=$_" for qw(1 true YES);
ok $server->get("/download?path=typed&raw=$_")->{json}, "raw=$_" for qw(0 false no);

# Chunked.
my $chunked = join '', map { my $part = substr $BIG, $_ * 900_000, 900_000; sprintf("%x\r\n", length $part) . "$part\r\n" } 0 .. 11;
my $answer = by_hand('POST /upload?path=chunked', ['X-Access-Token: t', 'Content-Type: application/octet-stream', 'Transfer-Encoding: chunked'], $chunked . "0\r\n\r\n");
is $answer->{status}, 200, 'a chunked body';
ok AbxServer::slurp("$base/chunked") eq substr($BIG, 0, 10_800_000), 'arrives';
is by_hand('POST /upload?path=nolength', ['X-Access-Token: t', 'Content-Type: application/octet-stream'])->{json}{bytes}, 0, 'no length at all is an empty body';

# mode and overwrite.
sub mode_of { return sprintf '%o', (stat "$base/$_[0]")[2] & 07777 }
upload('path=m1&mode=640', 'x');
is mode_of('m1'), '640', 'mode=640';
upload('path=m1', 'y');
is mode_of('m1'), '640', 'a replaced file keeps its own';
upload('path=m1&mode=0755', 'z');
is mode_of('m1'), '755', 'unless another is asked for';
upload('path=m2&mode=666', 'z');
is mode_of('m2'), '666', 'and it is not cut by a mask';
is upload("path=m3&mode=$_", 'x')->{status}, 400, "mode=$_" for qw(8 rwx 1777 0o644 -644 %2b644 ), '';
ok !-e "$base/m3", 'nothing was made';
is upload('path=new&overwrite=false', 'x')->{status}, 200, 'overwrite=false, nothing there';
$answer = upload('path=new&overwrite=false', 'other');
is_deeply [$answer->{status}, $answer->{json}{type}], [409, 'FileExistsError'], 'something there';
is AbxServer::slurp("$base/new"), 'x', 'which stays';
is upload('path=deep/er/x', 'x')->{status}, 200, 'parents are made';

# Refusals; of large bodies before they are sent.
sub refused {
	my ($name, $status, $type, $query, @headers) = @_;
	my $socket = $server->connect;

	syswrite $socket, "POST /upload$query HTTP/1.1\r\nHost: x\r\nContent-Type: application/octet-stream\r\nContent-Length: 15000000\r\n" . join('', map { "$_\r\n" } @headers) . "\r\n";
	my $answer = AbxServer::parse_response(AbxServer::read_until($socket, sub { $_[0] =~ /\}\z/ }));
	is_deeply [$answer->{status}, $answer->{json}{type}], [$status, $type], "$name: refused before the body";
	is $answer->{headers}{connection}, 'close', "$name: the connection is given up";
}
refused('no credential', 401, 'AuthError', '?path=x');
refused('a wrong one', 401, 'AuthError', '?path=x', 'X-Access-Token: wrong');
my @token = ('X-Access-Token: t');
refused('outside', 403, 'PermissionError', '?path=/etc/x', @token);
refused('no path', 400, 'ValueError', '', @token);
refused('an empty path', 400, 'ValueError', '?path=', @token);
refused('a path twice', 400, 'ValueError', '?path=x&path=y', @token);
refused('a NUL', 400, 'ValueError', '?path=a%00b', @token);
refused('a directory', 400, 'ValueError', '?path=deep', @token);
refused('below a file', 400, 'ValueError', '?path=new/x', @token);
refused('there already', 409, 'FileExistsError', '?path=new&overwrite=no', @token);
for my $length ($LIMIT + 1, $LIMIT + 10_000_000) {
	my $socket = $server->connect;

	syswrite $socket, "POST /upload?path=large HTTP/1.1\r\nHost: x\r\n@token\r\nContent-Type: application/octet-stream\r\nContent-Length: $length\r\n\r\n";
	my $answer = AbxServer::parse_response(AbxServer::read_until($socket, sub { $_[0] =~ /\}\z/ }));
	is_deeply [@$answer{qw(status)}, @{ $answer->{json} }{qw(type code)}], [413, 'ValueError', 'payload_too_large'], "$length bytes are too many";
}
is upload('path=large', substr $BIG x 2, 0, $LIMIT)->{status}, 200, 'the limit itself is not';
is -s "$base/large", $LIMIT, 'all of it';
is $server->post('/upload', '{"path": "x", "content_base64": "' . ('A' x 10_485_760) . '"}')->{status}, 413, 'JSON has its own limit';

# A client that leaves in the middle.
AbxServer::spew("$base/old", 'as before', 0600);
my $socket = $server->connect;
syswrite $socket, "POST /upload?path=old HTTP/1.1\r\nHost: x\r\n@token\r\nContent-Type: application/octet-stream\r\nContent-Length: 15000000\r\n\r\n" . substr $BIG, 0, 3_000_000;
close $socket;
ok AbxServer::wait_for(sub { $server->log_text =~ /POST \/upload .*ended early/ }), 'a body that ends early';
is AbxServer::slurp("$base/old"), 'as before', 'the old file is intact';
is_deeply leftovers(), [], 'and nothing is left behind';

# Ranges. The bytes 0..255 four times.
my $bytes = join '', map { chr } (0 .. 255) x 4;
AbxServer::spew("$base/r", $bytes);
sub range {
	my ($range, %headers) = @_;

	return $server->get('/download?path=r&raw=1', headers => { Range => $range, %headers });
}
for my $case (['bytes=0-0', 0, 0], ['bytes=1000-', 1000, 1023], ['bytes=-24', 1000, 1023], ['bytes=100-199', 100, 199], ['bytes=1023-5000', 1023, 1023]) {
	my ($range, $first, $last) = @$case;
	my $answer = range($range);

	is $answer->{status}, 206, "$range: 206";
	is $answer->{headers}{'content-range'}, "bytes $first-$last/1024", "$range: Content-Range";
	ok $answer->{content} eq substr($bytes, $first, $last - $first + 1), "$range: the bytes";
	is $answer->{headers}{'content-length'}, $last - $first + 1, "$range: their number";
}
for my $range ('bytes=1024-', 'bytes=-0', 'bytes=5000-6000') {
	my $answer = range($range);

	is $answer->{status}, 416, "$range: 416";
	is $answer->{headers}{'content-range'}, 'bytes */1024', "$range: Content-Range";
	is $answer->{json}{type}, 'ValueError', "$range: an error body";
}
for my $range ('bytes=0-1,3-4', 'bytes=5-3', 'lines=1-2', 'bytes=x-') {
	my $answer = range($range);

	is $answer->{status}, 200, "$range: all of it";
	ok $answer->{content} eq $bytes, "$range: 1024 bytes";
}
is $server->get('/download?path=j', headers => { Range => 'bytes=0-1' })->{status}, 200, 'JSON has no ranges';

# Validators.
my $whole = $server->get('/download?path=r&raw=1');
my ($etag, $date) = @{ $whole->{headers} }{qw(etag last-modified)};
like $etag, qr/\A"[0-9a-f.-]+"\z/, 'ETag';
like $date, qr/\A\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT\z/, 'Last-Modified';
is $whole->{headers}{'accept-ranges'}, 'bytes', 'Accept-Ranges';
for my $tag ($etag, "W/$etag", "\"other\", $etag", '*') {
	my $answer = $server->get('/download?path=r&raw=1', headers => { 'If-None-Match' => $tag });
	is_deeply [$answer->{status}, length($answer->{content} || ''), $answer->{headers}{etag}], [304, 0, $etag], "If-None-Match: $tag";
}
is $server->get('/download?path=r&raw=1', headers => { 'If-None-Match' => '"other"' })->{status}, 200, 'another tag';
is $server->get('/download?path=r&raw=1', headers => { 'If-Modified-Since' => $date })->{status}, 304, 'If-Modified-Since';
is $server->get('/download?path=r&raw=1', headers => { 'If-Modified-Since' => $date, 'If-None-Match' => '"other"' })->{status}, 200, 'a tag weighs more';
is range('bytes=0-1', 'If-Range' => $_)->{status}, 206, "If-Range: $_" for $etag, $date;
is range('bytes=0-1', 'If-Range' => $_)->{status}, 200, "If-Range: $_" for '"other"', "W/$etag", 'Thu, 01 Jan 1970 00:00:00 GMT';
upload('path=r', $bytes);
isnt $server->get('/download?path=r&raw=1')->{headers}{etag}, $etag, 'another file, another tag';

# HEAD.
$answer = $server->request('HEAD', '/download?path=r&raw=1');
is_deeply [$answer->{status}, $answer->{headers}{'content-length'}, length($answer->{content} || '')], [200, 1024, 0], 'HEAD';
$answer = $server->request('HEAD', '/download?path=r', headers => { Accept => 'application/octet-stream', Range => 'bytes=0-9' });
is_deeply [$answer->{status}, $answer->{headers}{'content-length'}], [206, 10], 'HEAD of a range';
is $server->request('HEAD', '/download?path=nothing&raw=1')->{status}, 404, 'HEAD of nothing';
is $server->request('HEAD', '/files/download-stream?path=r&raw=1')->{status}, 200, 'HEAD, the other endpoint';
is $server->request('HEAD', $_)->{status}, 405, "HEAD $_" for '/download?path=r', '/files/stat?path=r', '/files/stat?path=r&raw=1', '/upload?path=r&raw=1';
is $server->request('HEAD', '/download?path=r')->{headers}{allow}, 'GET', 'its Allow';
my $twice = by_hand('HEAD /download?path=r&raw=1', [@token]);
is $twice->{content}, '', 'HEAD sends no byte of the file';

# Names in Content-Disposition.
for my $case (['a b.txt', 'filename="a b.txt"'], ["q\"uo\\te", 'filename="q_uo_te"; filename*=UTF-8\'\'q%22uo%5Cte'],
	      ["nl\r\nX-Injected: 1", 'filename="nl__X-Injected: 1"; filename*=UTF-8\'\'nl%0D%0AX-Injected%3A%201'],
	      ["caf\xc3\xa9", 'filename="caf_"; filename*=UTF-8\'\'caf%C3%A9'], ["\xff\xfe", 'filename="__"; filename*=UTF-8\'\'%EF%BF%BD%EF%BF%BD']) {
	my ($name, $want) = @$case;
	(my $query = $name) =~ s/([^A-Za-z0-9])/sprintf '%%%02X', ord $1/ge;

	is upload("path=$query", 'named')->{status}, 200, "upload to an odd name: $query";
	my $answer = $server->get("/download?path=$query&raw=1");
	is $answer->{headers}{'content-disposition'}, "attachment; $want", "Content-Disposition of $query";
	is $answer->{content}, 'named', 'its bytes';
	ok !exists $answer->{headers}{'x-injected'}, 'nothing is injected';
	my $code = encode_base64($name, '') =~ s/([+\/=])/sprintf '%%%02X', ord $1/ger;
	is $server->get("/download?path_base64=$code&raw=1")->{content}, 'named', 'by path_base64';
	is upload("path_base64=$code", 'again')->{status}, 200, 'upload by path_base64';
	is AbxServer::slurp("$base/$name"), 'again', 'under these bytes';
}

# What is no file, and a file past the limit of JSON.
mkfifo "$base/fifo", 0600;
symlink '/dev/zero', "$base/zero";
is $server->get("/download?path=$_&raw=1")->{status}, 404, "raw download of $_" for 'fifo', 'deep', 'missing', 'r/x';
is $server->get("/download?path=$_&raw=1")->{status}, 403, "raw download of $_" for 'zero', '/proc/self/environ', '/dev/null';
AbxServer::spew("$base/huge", 'x' x ($LIMIT + 1));
is $server->get('/download?path=huge')->{status}, 413, 'too large as JSON';
is length $server->get('/download?path=huge&raw=1')->{content}, $LIMIT + 1, 'raw has no limit';

# A file that becomes shorter while it is sent: the body is cut, and does not look whole.
open my $sparse, '>', "$base/sparse" or die $!;
truncate $sparse, 500_000_000 or die $!;
my $reader = $server->connect;
syswrite $reader, "GET /download?path=sparse&raw=1 HTTP/1.1\r\nHost: x\r\n@token\r\n\r\n";
my $start = AbxServer::read_until($reader, sub { length $_[0] > 1000 });
truncate $sparse, 1000 or die $!;
my $rest = 0;
while (my $n = sysread $reader, my $piece, 1 << 20) {
	$rest += $n;
}
cmp_ok length($start) + $rest, '<', 500_000_000, 'a file that shrinks breaks its response';
unlink "$base/sparse", "$base/huge";

is_deeply leftovers(), [], 'no temporary file is left';
$server->stop;
done_testing;
