# upload, download, stat as JSON.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use AbxServer;
use MIME::Base64;
use POSIX qw(mkfifo);
use Test::More;

my $server = AbxServer->start(env => { ABX_MAX_UPLOAD_SIZE => 2_000_000 });
my $base = $server->base;

sub upload {
	my ($path, $bytes) = @_;

	return $server->post('/upload', { path => $path, content_base64 => encode_base64($bytes, '') });
}

sub is_refused {
	my ($answer, $status, $type, $code, $name) = @_;

	is $answer->{status}, $status, "$name: $status";
	is $answer->{json}{type}, $type, "$name: $type";
	is $answer->{json}{code}, $code, "$name: code";
	is $answer->{json}{endpoint}, $code && $status == 403 ? $answer->{json}{endpoint} : undef, "$name: endpoint";
}

is_deeply upload('note.txt', "hello")->{json}, { path => "$base/note.txt", bytes => 5 }, 'upload';
is_deeply $server->get('/download?path=note.txt')->{json}, { path => "$base/note.txt", content_base64 => 'aGVsbG8=' }, 'download';
is $server->get("/download?path=$base/note.txt")->{json}{content_base64}, 'aGVsbG8=', 'by its absolute path';
is upload('new/dirs/x', '')->{json}{bytes}, 0, 'parents are made, an empty file too';
is $server->get('/download?path=new/dirs/x')->{json}{content_base64}, '', 'and read';

# Every length around the pieces that files are sent in.
for my $size (1, 2, 3, 49145, 49146, 49147, 98292, 1_000_000) {
	my $bytes = pack 'N*', map { $_ * 2654435761 & 0xffffffff } 0 .. $size / 4;
	$bytes = substr $bytes, 0, $size;
	upload('sized', $bytes);
	ok AbxServer::slurp("$base/sized") eq $bytes, "$size bytes arrive";
	my $answer = $server->get('/download?path=sized');
	ok decode_base64($answer->{json}{content_base64}) eq $bytes, 'and come back';
	is $answer->{headers}{'content-length'}, length $answer->{content}, 'with a length';
}
my $wrapped = encode_base64('x' x 1000);
is $server->post('/upload', { path => 'w', content_base64 => $wrapped })->{json}{bytes}, 1000, 'line breaks in base64 are fine';

# A replaced file keeps its mode, and nothing is left beside it.
chmod 0750, "$base/note.txt";
upload('note.txt', 'other');
is sprintf('%o', (stat "$base/note.txt")[2] & 07777), '750', 'the mode of a replaced file';
symlink 'note.txt', "$base/link";
upload('link', 'through');
is AbxServer::slurp("$base/note.txt"), 'through', 'a link inside is followed';
ok -l "$base/link", 'and stays';
opendir(my $dir, $base);
is_deeply [grep { /\.tmp/ } readdir $dir], [], 'no temporary file';

is_refused($server->post('/upload', { content_base64 => '' }), 400, 'ValueError', undef, 'no path');
is_refused($server->post('/upload', { path => 'x' }), 400, 'ValueError', undef, 'no content');
is_refused($server->post('/upload', { path => 'x', content_base64 => 'a' }), 400, 'ValueError', undef, 'bad base64');
is_refused(upload('new', 'x'), 400, 'ValueError', undef, 'onto a directory');
is_refused(upload('note.txt/x', 'x'), 400, 'ValueError', undef, 'below a file');
is_refused(upload('/etc/passwd', 'x'), 403, 'PermissionError', 'path_not_allowed', 'outside');
is_refused(upload('../x', 'x'), 403, 'PermissionError', 'path_not_allowed', 'above');
is_refused(upload('x' x 256, 'x'), 400, 'ValueError', undef, 'a name that is too long');
is_refused(upload('big', 'x' x 2_000_001), 413, 'ValueError', 'payload_too_large', 'past the limit');
is upload('big', 'x' x 2_000_000)->{status}, 200, 'at the limit';
AbxServer::spew("$base/bigger", 'x' x 2_000_001);
is_refused($server->get('/download?path=bigger'), 413, 'ValueError', 'payload_too_large', 'download past the limit');
is_refused($server->get('/download'), 400, 'ValueError', undef, 'no path');
is_refused($server->get('/download?path=a&path=b'), 400, 'ValueError', 'duplicate_parameter', 'two paths');
is_refused($server->get('/download?path=missing'), 404, 'FileNotFoundError', undef, 'missing');
is_refused($server->get('/download?path=new'), 404, 'FileNotFoundError', undef, 'a directory');
is_refused($server->get('/download?path=/etc/passwd'), 403, 'PermissionError', 'path_not_allowed', 'outside');
symlink '/etc/passwd', "$base/out";
symlink "$base/note.txt", "$base/absolute";
symlink 'loop', "$base/loop";
is_refused($server->get('/download?path=out'), 403, 'PermissionError', 'path_not_allowed', 'a link that leaves');
is_refused(upload('out', 'x'), 403, 'PermissionError', 'path_not_allowed', 'upload through a link that leaves');
is $server->get('/download?path=absolute')->{json}{path}, "$base/note.txt", 'an absolute link that stays inside';
is_refused($server->get('/download?path=loop'), 400, 'ValueError', undef, 'a loop of links');
mkfifo "$base/fifo", 0600;
is_refused($server->get('/download?path=fifo'), 404, 'FileNotFoundError', undef, 'a FIFO');

# Names that are hard to carry.
for my $name ("new\nline", 'quo"te', "back\\slash", 'x' x 255, ' leading', 'trailing ', '...', '-rf', 'caf%C3%A9', "\x{e9}\x{1f600}", 'a+b', 'a&b=c', '#hash', '?query') {
	my $utf8 = $name;
	utf8::encode($utf8) if utf8::is_utf8($utf8) || $utf8 =~ /[\x80-\xff]/;
	(my $query = $utf8) =~ s/([^A-Za-z0-9])/sprintf '%%%02X', ord $1/ge;
	is upload($name, 'data')->{status}, 200, 'upload of an odd name';
	ok -e "$base/$utf8", 'it is there';
	my $stat = $server->get("/files/stat?path=$query")->{json};
	is $stat->{name}, $name, 'stat knows it';
	is $server->get("/download?path=$query")->{json}{content_base64}, 'ZGF0YQ==', 'and download';
}
is $server->get('/files/stat?path=' . ('x' x 256))->{status}, 400, 'a name of 256 bytes';
is $server->get('/files/stat?path=a%00b')->{status}, 400, 'a NUL in a query';
is $server->post('/upload', '{"path": "a\u0000b", "content_base64": ""}')->{status}, 400, 'a NUL in a body';
AbxServer::spew("$base/\xff\xfe", 'bytes');
is $server->get('/files/stat?path=%ff%fe')->{json}{name}, "\x{fffd}\x{fffd}", 'a name that is not UTF-8, in a query';
is $server->get('/download?path_base64=%2F%2F4%3D')->{json}{content_base64}, 'Ynl0ZXM=', 'and by path_base64';
is $server->post('/upload', { path_base64 => '//79', content_base64 => 'YQ==' })->{status}, 200, 'upload by path_base64';
is AbxServer::slurp("$base/\xff\xfe\xfd"), 'a', 'under these bytes';

# stat
AbxServer::spew("$base/s", 'x' x 12, 0640);
utime 1_791_763_200, 1_791_763_200.25, "$base/s";
my $stat = $server->get('/files/stat?path=s')->{json};
is_deeply [sort keys %$stat], [sort qw(name path type size permissions modified accessed created exists)], 'the members of stat';
is_deeply [@$stat{qw(name path type size permissions)}, !!$stat->{exists}], ['s', "$base/s", 'file', 12, '640', 1], 'a file';
like $stat->{$_}, qr/\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?\+00:00\z/, "the time $_" for qw(modified accessed created);
is $stat->{accessed}, '2026-10-12T00:00:00+00:00', 'no fraction where it is zero';
is $server->get('/files/stat?path=new')->{json}{type}, 'directory', 'a directory';
is $server->get('/files/stat?path=.')->{json}{path}, $base, 'the base directory';
is $server->get('/files/stat?path=out')->{json}{type}, 'symlink', 'a link itself, wherever it leads';
is $server->get('/files/stat?path=fifo')->{json}{type}, 'unknown', 'a FIFO';
$stat = $server->get('/files/stat?path=no/such')->{json};
is_deeply [@$stat{qw(name path type size permissions modified accessed created)}, !!$stat->{exists}],
	['such', "$base/no/such", 'unknown', 0, '', '', '', '', ''], 'nothing there';
is_refused($server->get('/files/stat?path=/etc'), 403, 'PermissionError', 'path_not_allowed', 'stat outside');
is_refused($server->get('/files/stat?path=no/../../../etc'), 403, 'PermissionError', 'path_not_allowed', 'stat outside, by way of nothing');
is $server->get('/files/stat?path=new/../s')->{json}{path}, "$base/s", '.. that stays inside';

done_testing;
