# Named commands: the list, and the three built-in ones.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use AbxServer;
use MIME::Base64;
use Test::More;

my $server = AbxServer->start;

sub call {
	my ($name, $args) = @_;

	return $server->post("/commands/$name", $args);
}

sub is_refused {
	my ($answer, $status, $type, $message, $name) = @_;

	is $answer->{status}, $status, "$name: $status";
	is $answer->{json}{type}, $type, "$name: $type";
	like $answer->{json}{error}, $message, "$name: message";
}

my $list = $server->get('/commands')->{json}{commands};
is_deeply [map { $_->{name} } @$list], [qw(download runshell upload)], 'the commands, by name';
my ($runshell) = grep { $_->{name} eq 'runshell' } @$list;
is_deeply [map { [@$_{qw(name type)}, $_->{required} ? 1 : 0, $_->{default}] } @{ $runshell->{args} }],
	[['cmd', 'string', 1, undef], ['cwd', 'string', 0, undef], ['env', 'object', 0, undef], ['timeout', 'float', 0, 300]], 'the arguments of runshell';
ok exists $runshell->{args}[0]{description}, 'each has a description';

is_deeply call('runshell', { cmd => 'echo out; echo err >&2; exit 3' })->{json}, { result => { stdout => "out\n", stderr => "err\n", exit_code => 3 } }, 'runshell';
is call('runshell', { cmd => 'echo $((6*7)) | tr 4 5' })->{json}{result}{stdout}, "52\n", 'a real shell: pipes and variables';
is call('runshell', { cmd => 'pwd' })->{json}{result}{stdout}, $server->base . "\n", 'it runs in the base directory';
mkdir $server->base . '/sub';
is call('runshell', { cmd => 'pwd', cwd => 'sub' })->{json}{result}{stdout}, $server->base . "/sub\n", 'or in cwd';
is call('runshell', { cmd => 'echo $X', env => { X => 'y z' } })->{json}{result}{stdout}, "y z\n", 'env';
is call('runshell', { cmd => 'cat' })->{json}{result}{stdout}, '', 'standard input is empty';
is call('runshell', { cmd => 'kill -9 $$' })->{json}{result}{exit_code}, -9, 'killed by a signal';
is call('runshell', { cmd => 'nosuchprogram' })->{json}{result}{exit_code}, 127, 'the shell says what it did not find';
my $timeout = call('runshell', { cmd => 'echo before; sleep 60', timeout => 0.3 });
is_refused($timeout, 500, 'TimeoutError', qr/\ACommand timed out after 0\.3s\z/, 'runshell past its time');
is $timeout->{json}{stdout}, "before\n", 'the output so far is there';
is_refused(call('runshell', {}), 400, 'ValueError', qr/\Acmd: is required\z/, 'no cmd');
is_refused(call('runshell', { cmd => '  ' }), 400, 'ValueError', qr/blank/, 'a blank cmd');
is_refused(call('runshell', { cmd => "a\0b" }), 400, 'ValueError', qr/NUL/, 'a NUL');
is call('runshell', { cmd => 5 })->{json}{result}{exit_code}, 127, 'a number is its text';
is_refused(call('runshell', { cmd => 'true', env => [] }), 400, 'ValueError', qr/\Aenv: /, 'env that is no object');
is_refused(call('runshell', { cmd => 'true', cwd => '/etc' }), 403, 'PermissionError', qr/outside/, 'cwd outside');
is_refused(call('runshell', { cmd => 'true', cwd => 'missing' }), 403, 'PermissionError', qr/cwd/, 'cwd that is missing');

my $file = $server->base . '/d/e/text';
is_deeply call('upload', { path => 'd/e/text', content => "gr\x{fc}\x{df}e\n" })->{json}, { result => { path => $file, bytes => 8 } }, 'upload of text';
is AbxServer::slurp($file), "gr\xc3\xbc\xc3\x9fe\n", 'the bytes on disk';
is_deeply call('download', { path => 'd/e/text' })->{json}, { result => { path => $file, content => "gr\x{fc}\x{df}e\n" } }, 'download of text';
my $bytes = join '', map { chr } 0 .. 255;
is_deeply call('upload', { path => 'bin', content_base64 => encode_base64($bytes, '') })->{json}{result}{bytes}, 256, 'upload of bytes';
is AbxServer::slurp($server->base . '/bin'), $bytes, 'the bytes on disk';
is_deeply call('download', { path => 'bin' })->{json}{result}, { path => $server->base . '/bin', content_base64 => encode_base64($bytes, '') }, 'download of bytes';
is call('download', { path => 'empty' })->{status}, 404, 'a missing file';
is call('upload', { path => 'empty', content => '' })->{json}{result}{bytes}, 0, 'an empty file';
is call('download', { path => 'empty' })->{json}{result}{content}, '', 'and back';
is_refused(call('upload', { path => 'x' }), 400, 'ValueError', qr/content/, 'no content');
is_refused(call('upload', { path => 'x', content => 'a', content_base64 => 'YQ==' }), 400, 'ValueError', qr/either/, 'both contents');
is_refused(call('upload', { content => 'a' }), 400, 'ValueError', qr/\Apath: is required\z/, 'no path');
is_refused(call('upload', { path => 'x', content_base64 => '!' }), 400, 'ValueError', qr/base64/, 'bad base64');
is_refused(call('upload', { path => '/etc/x', content => 'a' }), 403, 'PermissionError', qr/outside/, 'a path outside');
is_refused(call('download', { path => '.' }), 404, 'FileNotFoundError', qr/Not a file/, 'download of a directory');
is_refused(call('nothing', {}), 404, 'ValueError', qr/\AUnknown command: nothing\z/, 'an unknown command');
is call('run%73hell', { cmd => 'true' })->{status}, 200, 'the name is decoded once';

# Large texts are cut out of the body, in either member, with escapes and without: what comes out is what went in.
for my $size (16000, 17000, 200_000, 1_500_000) {
	my $text = join '', map { ("line $_\t\"quoted\" \\ \x{e9}\x{20ac}\x{1f600}\n") } 1 .. $size / 30;
	my $utf8 = $text;
	utf8::encode($utf8);
	is call('upload', { path => 'large', content => $text })->{json}{result}{bytes}, length $utf8, "upload of $size characters";
	ok AbxServer::slurp($server->base . '/large') eq $utf8, 'the bytes on disk';
	ok call('download', { path => 'large' })->{json}{result}{content} eq $text, 'and back';
	ok decode_base64($server->get('/download?path=large')->{json}{content_base64}) eq $utf8, 'and back as base64';
}

done_testing;
