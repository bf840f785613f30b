# What a policy says of files, where an operation meets it in the middle of a tree or in its raw form.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use AbxServer;
use IO::Uncompress::Gunzip qw(gunzip);
use MIME::Base64;
use Test::More;

my $other = AbxServer::temp_dir();
my %DENY = (paths => { deny => ['**/.ssh/**', '*.key'] });
my $policy = {
	endpoints => {
		files_list => { %DENY, limits => { max_depth => 2 } },
		files_search => { %DENY, limits => { max_depth => 2, timeout_seconds => 5 } },
		files_archive => { %DENY, limits => { max_files => 5, max_bytes => 20_000 } },
		files_watch => { %DENY, limits => { max_duration_seconds => 5 } },
		files_delete => { %DENY },
		files_move => { paths => { allow => ['%BASE%', "$other"], deny => ['**/.ssh/**'] } },
		files_stat => { paths => { allow => ['%BASE%/**/*.txt'] } },
		upload => { allow_extensions => ['.txt', '.TAR'], overwrite => \0, limits => { max_bytes => 1000 } },
		download => { limits => { max_bytes => 500 } },
		files_mkdir => { paths => { allow => ["$other"] } },
	},
};
my $server = AbxServer->prepare;
my $base = $server->base;
$server->{env}{ABX_SERVER_POLICY} = AbxServer::encode_json($policy) =~ s/%BASE%/$base/gr;
$server->launch;

sub is_refused {
	my ($answer, $status, $type, $code, $rule, $name) = @_;

	is_deeply [$answer->{status}, @{ $answer->{json} }{qw(type code rule)}], [$status, $type, $code, $rule], "$name: $status $type";
}

mkdir "$base/$_" for qw(t t/sub t/sub/.ssh t/sub/down);
AbxServer::spew("$base/$_", "<$_>") for qw(t/a.txt t/b.key t/sub/c.txt t/sub/.ssh/id t/sub/down/d.txt);
symlink 'b.key', "$base/t/tokey";
symlink 'sub/.ssh/id', "$base/t/toid";

# What is denied is left out of what is shown.
sub names { return [map { $_->{name} } @{ $server->get("/files/list?path=$_[0]&recursive=1")->{json}{entries} }] }
is_deeply names('t'), ['a.txt', 'sub', 'sub/c.txt', 'sub/down', 'toid', 'tokey'], 'list, two levels';
sub hits { return [map { $_->{name} } @{ $server->post('/files/search', { path => 't', pattern => '*', @_ })->{json}{results} }] }
is_deeply hits(), ['a.txt', 'c.txt', 'toid', 'tokey'], 'search';
is_deeply hits(max_depth => 32), ['a.txt', 'c.txt', 'toid', 'tokey'], 'no deeper than the policy says';
is_deeply hits(max_depth => 1), ['a.txt', 'toid', 'tokey'], 'less is fine';
my $tar;
gunzip(\decode_base64($server->post('/files/archive', { paths => ['t'] })->{json}{content_base64}) => \$tar);
like $tar, qr/<t\/sub\/c\.txt>/, 'archive: what is allowed is there';
unlike $tar, qr/<t\/b\.key>|\.ssh|tokey|toid/, 'and nothing that is denied, nor a link to it';
my $watch = $server->connect;
syswrite $watch, "GET /files/watch?path=t&recursive=1&timeout=60 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
like AbxServer::read_until($watch, sub { $_[0] =~ /"entries": \d+/ }), qr/"entries": 7\b/, 'watch';
AbxServer::spew("$base/t/new.key", '');
AbxServer::spew("$base/t/sub/.ssh/new", '');
AbxServer::spew("$base/t/new.txt", '');
my $text = AbxServer::read_until($watch);
like $text, qr/new\.txt/, 'tells of what is allowed';
unlike $text, qr/new\.key|\.ssh/, 'and of nothing else';
like $text, qr/event: end\ndata: \{"reason": "timeout"\}/, 'and ends when the policy says so';

# Limits of archives.
AbxServer::spew("$base/t/sub/$_.txt", '') for 1 .. 5;
is_refused($server->post('/files/archive', { paths => ['t/sub'] }), 400, 'ValueError', undef, undef, 'too many files');
open my $random, '<:raw', '/dev/urandom' or die $!;
read $random, my $noise, 30_000;
AbxServer::spew("$base/noise", $noise);
is_refused($server->post('/files/archive', { paths => ['noise'] }), 413, 'ValueError', 'payload_too_large', undef, 'an archive past the limit');
is_refused($server->post('/files/archive', { paths => ['noise'] }, headers => { Accept => 'application/octet-stream' }), 413, 'ValueError', 'payload_too_large', undef,
	   'raw, before the first byte');

# Trees that hold something denied stay where they are, whole.
my $delete = 'policy:endpoints.files_delete';
is_refused($server->delete('/files?path=t'), 403, 'PermissionError', 'path_not_allowed', $delete, 'a tree that holds a denied path');
is_refused($server->delete('/files?path=t/b.key'), 403, 'PermissionError', 'path_not_allowed', $delete, 'a denied file');
ok -e "$base/t/a.txt" && -e "$base/t/b.key", 'nothing is deleted';
is $server->delete('/files?path=t/sub/down')->{status}, 200, 'a tree that holds none';
my $move = 'policy:endpoints.files_move';
is_refused($server->post('/files/move', { source => 't', destination => 'moved' }), 403, 'PermissionError', 'path_not_allowed', $move, 'moving a tree that holds one');
is_refused($server->post('/files/move', { source => 't/a.txt', destination => 't/sub/.ssh/a' }), 403, 'PermissionError', 'path_not_allowed', $move, 'moving something there');
is $server->post('/files/move', { source => 't/a.txt', destination => "$other/x/a.txt" })->{status}, 200, 'from one allowed tree to another';
ok -e "$other/x/a.txt", 'it went';
is_refused($server->post('/files/move', { source => "$other", destination => 'x' }), 403, 'PermissionError', 'path_not_allowed', undef, 'an allowed tree itself');
is $server->post('/files/mkdir', { path => "$other/made" })->{status}, 200, 'the trees of one endpoint';
is_refused($server->post('/files/mkdir', { path => "$base/made" }), 403, 'PermissionError', 'path_not_allowed', 'policy:endpoints.files_mkdir', 'are not those of another');

# Uploads and downloads, as JSON and raw.
my %OCTETS = ('Content-Type' => 'application/octet-stream');
for my $way (sub { $server->post('/upload', { path => $_[0], content_base64 => encode_base64($_[1], '') }) },
	     sub { $server->request('POST', "/upload?path=$_[0]", content => $_[1], headers => \%OCTETS) }) {
	my $upload = 'policy:endpoints.upload';

	is $way->('fine.txt', 'x')->{status}, 200, 'an extension that is allowed';
	is $way->('fine.tar', 'x')->{status}, 200, 'whatever its case';
	is_refused($way->('bad.sh', 'x'), 403, 'PermissionError', 'extension_not_allowed', $upload, 'one that is not');
	is_refused($way->('new/dir/bad.sh', 'x'), 403, 'PermissionError', 'extension_not_allowed', $upload, 'in a new directory');
	ok !-e "$base/new", 'which is not made for it';
	is_refused($way->('large.txt', 'x' x 1001), 413, 'ValueError', 'payload_too_large', undef, 'past the limit');
	is $way->('fine.txt', 'y')->{status}, 409, 'nothing is overwritten';
	is AbxServer::slurp("$base/fine.txt"), 'x', 'it stays';
	unlink "$base/fine.txt", "$base/fine.tar";
}
is $server->request('POST', '/upload?path=noise.txt&overwrite=true', content => 'y', headers => \%OCTETS)->{status}, 200, 'overwrite=true on a new file';
is $server->request('POST', '/upload?path=noise.txt&overwrite=true', content => 'z', headers => \%OCTETS)->{status}, 409, 'does not outweigh the policy';
AbxServer::spew("$base/mid", 'x' x 501);
is_refused($server->get("/download?path=mid$_"), 413, 'ValueError', 'payload_too_large', undef, "a policy's limit: $_") for '', '&raw=1';
is $server->get('/files/download-stream?path=mid&raw=1')->{status}, 200, 'of one endpoint alone';

# An allow list that is a glob.
is $server->get('/files/stat?path=noise.txt')->{status}, 200, 'a glob allows';
is $server->get('/files/stat?path=mid')->{status}, 403, 'and refuses the rest';

$server->stop;
done_testing;
