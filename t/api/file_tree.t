# list, search, mkdir, delete, move.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use AbxServer;
use MIME::Base64;
use POSIX qw(mkfifo);
use Test::More;
use Time::HiRes;

my $server = AbxServer->start;
my $base = $server->base;
my $outside = AbxServer::temp_dir();

AbxServer::spew("$outside/secret", 'secret');

sub is_refused {
	my ($answer, $status, $type, $code, $name) = @_;

	is_deeply [$answer->{status}, @{ $answer->{json} }{qw(type code)}], [$status, $type, $code], "$name: $status $type";
}

sub dirs { mkdir "$base/$_" or die "$_: $!" for @_ }
sub files { AbxServer::spew("$base/$_", "<$_>") for @_ }

sub names {
	my ($query) = @_;
	my $answer = $server->get("/files/list?$query");

	return $answer->{json}{entries} ? [map { $_->{name} } @{ $answer->{json}{entries} }] : $answer;
}

sub mkdirs { return $server->post('/files/mkdir', { path => $_[0] }) }
sub move { return $server->post('/files/move', { source => $_[0], destination => $_[1] }) }
sub remove { my ($path) = @_; $path =~ s/([^A-Za-z0-9\/.])/sprintf '%%%02X', ord $1/ge; return $server->delete("/files?path=$path") }
sub search { return $server->post('/files/search', { path => '.', pattern => '*', @_ }) }

# ---- list

is_deeply $server->get('/files/list?path=.')->{json}, { entries => [] }, 'an empty directory';
dirs('l', 'l/a', 'l/a/x', 'l/a/x/y', 'l/a/x/y/z', 'l/a-b', 'l/empty');
files('l/a/f', 'l/a/x/g', 'l/a/x/y/h', 'l/a/x/y/z/i', 'l/a-b/j', 'l/a.c', "l/new\nline", 'l/...');
symlink $outside, "$base/l/out";
symlink 'a', "$base/l/in";
mkfifo "$base/l/fifo", 0600;
Time::HiRes::utime 1_791_763_200, 1_791_763_200.25, "$base/l/a.c";
is_deeply names('path=l'), ['...', 'a', 'a-b', 'a.c', 'empty', 'fifo', 'in', "new\nline", 'out'], 'sorted';
my %entry = map { $_->{name} => $_ } @{ $server->get('/files/list?path=l')->{json}{entries} };
is_deeply $entry{'a.c'}, { name => 'a.c', type => 'file', size => length('<l/a.c>'), modified => '2026-10-12T00:00:00.250000+00:00' }, 'a file';
is_deeply [sort keys %{ $entry{a} }], [qw(modified name size type)], 'the members of an entry';
is $entry{a}{type}, 'directory', 'a directory';
is $entry{$_}{type}, 'file', "$_ is a file to a list" for qw(in out fifo);
is_deeply names('path=l&recursive=true'),
	['...', 'a', 'a-b', 'a-b/j', 'a.c', 'a/f', 'a/x', 'a/x/g', 'a/x/y', 'empty', 'fifo', 'in', "new\nline", 'out'],
	'recursive: three levels, by the whole name, no link followed';
is_deeply names('path=l&recursive=no'), names('path=l'), 'recursive=no';
is_deeply names('path=l/in'), ['f', 'x'], 'a link that is named is followed';
is_deeply names("path=$base/l/a/x"), ['g', 'y'], 'an absolute path';
is_refused($server->get('/files/list?path=l/a.c'), 404, 'FileNotFoundError', undef, 'list of a file');
is_refused($server->get('/files/list?path=l/a.c/x'), 404, 'FileNotFoundError', undef, 'list below a file');
is_refused($server->get('/files/list?path=nope'), 404, 'FileNotFoundError', undef, 'list of nothing');
is_refused($server->get('/files/list'), 400, 'ValueError', undef, 'list without a path');
is_refused($server->get('/files/list?path='), 400, 'ValueError', undef, 'list of an empty path');
is_refused($server->get('/files/list?path=l/out'), 403, 'PermissionError', 'path_not_allowed', 'list outside');
AbxServer::spew("$base/l/a/\xff", '');
my ($odd) = grep { $_->{name_base64} } @{ $server->get('/files/list?path=l&recursive=1')->{json}{entries} };
is_deeply [@$odd{qw(name name_base64)}], ["a/\x{fffd}", encode_base64("a/\xff", '')], 'a name that is not UTF-8';

# Many entries: in order, and in memory that does not grow with them.
dirs('many');
for my $i (0 .. 99_999) {
	symlink 'x', sprintf '%s/many/%06d', $base, $i * 7919 % 100_000;
}
my $socket = $server->connect;
syswrite $socket, "GET /files/list?path=many HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
my $many = AbxServer::parse_response(AbxServer::read_until($socket));
my @found = $many->{content} =~ /"name": "(\d+)"/g;
is scalar @found, 100_000, 'a hundred thousand entries';
is_deeply [@found[0, 1, 99_999]], ['000000', '000001', '099999'], 'the first and the last';
ok !(grep { $found[$_ - 1] ge $found[$_] } 1 .. $#found), 'in order';
my ($peak) = AbxServer::slurp('/proc/' . $server->responder('file_ops') . '/status') =~ /VmHWM:\s*(\d+) kB/;
cmp_ok $peak, '<', 60_000, "the responder's memory stays small ($peak kB)" unless $ENV{ABX_SANITIZERS};

# ---- search

is_deeply $server->post('/files/search', { path => 'l', pattern => '[fgh]' })->{json},
	{ results => [{ name => 'f', path => "$base/l/a/f" }, { name => 'g', path => "$base/l/a/x/g" }, { name => 'h', path => "$base/l/a/x/y/h" }],
	  timed_out => JSON::PP::false }, 'search';
sub hits { my $answer = search(path => 'l', @_); return $answer->{json}{results} ? [map { $_->{name} } @{ $answer->{json}{results} }] : $answer }
is_deeply hits(pattern => 'i'), ['i'], 'the fifth level is found';
is_deeply hits(pattern => '[fghij]', max_depth => 2), ['j', 'f'], 'max_depth';
is_deeply hits(pattern => '[fghij]', max_depth => 1), [], 'of 1 is the directory itself';
is_deeply hits(pattern => '?', max_results => 2), ['j', 'f'], 'max_results';
is_deeply hits(pattern => '*n*'), ['in', "new\nline"], 'links, and a name of two lines';
is_deeply hits(pattern => 'a*'), ['a.c'], 'no directories';
is_deeply hits(pattern => 'FIFO'), [], 'the case counts';
is_deeply hits(pattern => 'fifo'), ['fifo'], 'what is no directory';
is_deeply hits(pattern => ''), [], 'an empty pattern';
dirs(map { join '/', 'l/deep', (1 .. $_) } 0 .. 8);
files('l/deep/1/2/3/4/5/6/7/8/bottom');
is_deeply hits(pattern => 'bottom'), [], 'ten levels down is too far';
is_deeply hits(pattern => 'bottom', max_depth => 10), ['bottom'], 'unless asked for';
is_deeply hits(pattern => 'bottom', max_depth => 1_000_000), ['bottom'], 'or more';
is_refused(search($_->[0] => $_->[1]), 400, 'ValueError', undef, "search, $_->[2]")
	for ['max_depth', '5', 'a depth that is text'], ['max_depth', 1.5, 'a depth that is no integer'], ['max_depth', 0, 'no depth'],
	['max_results', -1, 'less than nothing'], ['max_results', 0, 'nothing'], ['pattern', 5, 'a number'], ['pattern', undef, 'no pattern'], ['path', undef, 'no path'],
	['path', '', 'an empty path'];
is_refused(search(path => 'l/a.c'), 404, 'FileNotFoundError', undef, 'search in a file');
is_refused(search(path => 'nope'), 404, 'FileNotFoundError', undef, 'search in nothing');
is_refused(search(path => '..'), 403, 'PermissionError', 'path_not_allowed', 'search outside');
my ($hit) = @{ search(path => 'l', pattern => "\x{fffd}")->{json}{results} };
is $hit, undef, 'a pattern is text';
($hit) = grep { $_->{name_base64} } @{ search(path => 'l/a', pattern => '?')->{json}{results} };
is_deeply [@$hit{qw(name_base64 path_base64)}], [encode_base64("\xff", ''), encode_base64("$base/l/a/\xff", '')], 'a name that is not UTF-8';

# ---- mkdir

is_deeply mkdirs('m')->{json}, { path => "$base/m", created => JSON::PP::true }, 'mkdir';
ok -d "$base/m", 'it is there';
is_deeply mkdirs("$base/m/n/o/p")->{json}, { path => "$base/m/n/o/p", created => JSON::PP::true }, 'with its parents';
is mkdirs('m/n/')->{status}, 200, 'one that is there';
is mkdirs('.')->{status}, 200, 'the base directory';
is mkdirs("m/\x{e9}")->{json}{path}, "$base/m/\x{e9}", 'a name in UTF-8';
symlink 'm/n', "$base/tolink";
is mkdirs('tolink/q')->{json}{path}, "$base/m/n/q", 'through a link inside';
is_refused(mkdirs('l/a.c'), 500, 'FileExistsError', undef, 'mkdir over a file');
is_refused(mkdirs('l/a.c/x'), 400, 'ValueError', undef, 'mkdir below a file');
is_refused(mkdirs(''), 400, 'ValueError', undef, 'mkdir of an empty path');
is_refused(mkdirs("a\0b"), 400, 'ValueError', undef, 'mkdir of a NUL');
is_refused(mkdirs('x' x 256), 400, 'ValueError', undef, 'mkdir of a name that is too long');
is_refused(mkdirs(undef), 400, 'ValueError', undef, 'mkdir without a path');
is_refused(mkdirs('l/out/x'), 403, 'PermissionError', 'path_not_allowed', 'mkdir outside');
is_refused(mkdirs('../x'), 403, 'PermissionError', 'path_not_allowed', 'mkdir above');

# ---- move

files('from');
is_deeply move('from', 'to')->{json}, { source => "$base/from", destination => "$base/to" }, 'move';
ok !-e "$base/from" && AbxServer::slurp("$base/to") eq '<from>', 'it went';
is move('to', 'm/new/parents/to')->{status}, 200, 'parents of the destination are made';
files('onto');
is move('m/new/parents/to', 'onto')->{status}, 200, 'onto a file';
is AbxServer::slurp("$base/onto"), '<from>', 'which it replaces';
is move('m', 'moved')->{status}, 200, 'a directory';
ok -d "$base/moved/n/o/p" && !-e "$base/m", 'with all in it';
is_refused(move('onto', 'moved'), 409, 'FileExistsError', undef, 'onto a directory');
is_refused(move('moved', 'l/empty'), 409, 'FileExistsError', undef, 'a directory onto an empty one');
is_refused(move('moved', 'onto'), 409, 'FileExistsError', undef, 'a directory onto a file');
is_refused(move('moved', 'moved/n/x'), 400, 'ValueError', undef, 'into itself');
is_refused(move('moved', 'moved/other/x'), 400, 'ValueError', undef, 'into a new place in itself');
ok !-e "$base/moved/other", 'and no parents are made for it';
is move('moved', 'moved')->{status}, 200, 'onto itself';
is move('onto', './moved/../onto')->{status}, 200, 'onto itself by another name';
link "$base/onto", "$base/hard" or die $!;
is move('onto', 'hard')->{status}, 200, 'onto a second name of the same file';
ok !-e "$base/onto" && -e "$base/hard", 'leaves that one';
symlink $outside, "$base/goes";
is move('goes', 'gone')->{status}, 200, 'a link itself is moved';
ok -l "$base/gone" && !-l "$base/goes", 'wherever it leads';
files('target');
symlink 'target', "$base/tofile";
files('f2');
is move('f2', 'tofile')->{json}{destination}, "$base/target", 'onto a link: what it leads to is replaced';
ok -l "$base/tofile" && AbxServer::slurp("$base/target") eq '<f2>', 'and it stays';
is_refused(move('nope', 'x'), 404, 'FileNotFoundError', undef, 'move of nothing');
like move('nope', 'x')->{json}{error}, qr/\Asource: /, 'the message says whose fault';
is_refused(move('hard', 'target/x'), 400, 'ValueError', undef, 'below a file');
like move('hard', 'target/x')->{json}{error}, qr/\Adestination: /, 'the destination';
is_refused(move('hard', '/etc/x'), 403, 'PermissionError', 'path_not_allowed', 'move to outside');
is_refused(move('/etc/passwd', 'x'), 403, 'PermissionError', 'path_not_allowed', 'move from outside');
is_refused(move('hard', 'gone/x'), 403, 'PermissionError', 'path_not_allowed', 'move through a link that leaves');
is_refused(move('.', 'x'), 403, 'PermissionError', 'path_not_allowed', 'the base directory');
is_refused(move('hard', undef), 400, 'ValueError', undef, 'no destination');
like move('hard', undef)->{json}{error}, qr/\Adestination: /, 'which is named';
like move(undef, 'x')->{json}{error}, qr/\Asource: /, 'or the source';
is $server->post('/files/move', { source_base64 => encode_base64('hard', ''), destination_base64 => encode_base64("\xfe", '') })->{status}, 200, 'by their base64 twins';
ok -e "$base/\xfe", 'under these bytes';

# ---- delete

files('del');
is_deeply remove('del')->{json}, { path => "$base/del", deleted => JSON::PP::true }, 'delete';
ok !-e "$base/del", 'it is gone';
is_refused(remove('del'), 404, 'FileNotFoundError', undef, 'twice');
symlink $outside, "$base/l/a/out";
is remove('l')->{status}, 200, 'a tree, with links that lead out and a FIFO';
ok !-e "$base/l", 'is gone';
is AbxServer::slurp("$outside/secret"), 'secret', 'and nothing outside';
is remove('gone')->{status}, 200, 'a link';
ok !-l "$base/gone" && -d "$outside", 'itself';
is remove('many')->{status}, 200, 'a hundred thousand entries';
is $server->delete('/files', { path => 'moved' })->{status}, 200, 'the path in the body';
ok !-e "$base/moved", 'a directory';
is $server->delete('/files?path_base64=%2Fg%3D%3D')->{status}, 200, 'by path_base64';
ok !-e "$base/\xfe", 'these bytes';
is_refused(remove('.'), 403, 'PermissionError', 'path_not_allowed', 'the base directory');
is_refused(remove($base), 403, 'PermissionError', 'path_not_allowed', 'by its path');
is_refused(remove("x/../"), 403, 'PermissionError', 'path_not_allowed', 'by another');
is_refused(remove('/etc/passwd'), 403, 'PermissionError', 'path_not_allowed', 'outside');
is_refused(remove('..'), 403, 'PermissionError', 'path_not_allowed', 'above');
is_refused(remove('target/x'), 404, 'FileNotFoundError', undef, 'below a file');
is_refused($server->delete('/files'), 400, 'ValueError', undef, 'no path');
is_refused($server->delete('/files?path=a&path=b'), 400, 'ValueError', 'duplicate_parameter', 'two paths');

$server->stop;
done_testing;
