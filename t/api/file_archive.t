# Archives: what is in them, limits, the raw form.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use AbxServer;
use IO::Uncompress::Gunzip qw(gunzip);
use IO::Uncompress::Unzip;
use MIME::Base64;
use POSIX qw(mkfifo);
use Test::More;

my $server = AbxServer->start;
my $base = $server->base;
my %RAW = (Accept => 'application/octet-stream');

sub archive {
	my ($paths, $format, %option) = @_;

	return $server->post('/files/archive', { paths => $paths, defined $format ? (format => $format) : () }, %option);
}

# The members of a tar archive, in order: name, type, mode, time, size, link, content. Long names and exact times are in the extended headers.
sub read_tar {
	my ($packed) = @_;
	my ($tar, @members, %extended);

	gunzip(\$packed => \$tar) or return;
	while (length $tar >= 512) {
		my ($name, $mode, undef, undef, $size, $time, undef, $type, $link, undef, undef, undef, undef, undef, undef, $prefix) =
			unpack 'Z100 A8 A8 A8 A12 A12 A8 A1 Z100 a6 a2 Z32 Z32 A8 A8 Z155', substr $tar, 0, 512, '';
		last if $name eq '';
		my $length = oct $size;
		my $content = substr $tar, 0, $length, '';
		substr $tar, 0, -$length % 512, '';
		if ($type eq 'x') {
			%extended = ();
			while ($content =~ /\A(\d+) /) {
				my $record = substr $content, 0, $1, '';
				$record =~ /\A\d+ ([^=]+)=(.*)\n\z/s and $extended{$1} = $2;
			}
			next;
		}
		$name = "$prefix/$name" if length $prefix;
		push @members, { name => $extended{path} || $name, type => $type, mode => sprintf('%o', oct $mode), time => $extended{mtime} || oct $time,
				 size => $length, link => $extended{linkpath} || $link, content => $content };
		%extended = ();
	}
	return @members;
}

sub read_zip {
	my ($packed) = @_;
	my $zip = IO::Uncompress::Unzip->new(\$packed) or return;
	my @members;

	while (1) {
		my $content = do { local $/; <$zip> };
		push @members, { name => $zip->getHeaderInfo->{Name}, content => defined $content ? $content : '' };
		last unless $zip->nextStream > 0;
	}
	return @members;
}

mkdir "$base/$_" for qw(p p/x p/x/y p/empty);
AbxServer::spew("$base/p/run", "#!/bin/sh\n", 0750);
AbxServer::spew("$base/p/x/data", join('', map { chr } 0 .. 255) x 400, 0604);
AbxServer::spew("$base/p/x/y/deep", 'deep', 0400);
AbxServer::spew("$base/p/x-first", '', 0666);
AbxServer::spew("$base/p/caf\xc3\xa9", 'utf-8', 0644);
AbxServer::spew("$base/p/" . ('n' x 255), 'long', 0644);
AbxServer::spew("$base/p/new\nline", 'two', 0644);
chmod 0751, "$base/p/x";
symlink 'x/data', "$base/p/inside";
symlink "$base/p/run", "$base/p/absolute";
symlink 'nothing', "$base/p/dangling";
symlink '/etc/passwd', "$base/p/outside";
symlink '../../../../etc', "$base/p/up";
symlink 'p', "$base/link";
mkfifo "$base/p/fifo", 0600;
utime 1_600_000_000, 1_600_000_000, "$base/p/run";

my @want = ('p/', 'p/absolute', "p/caf\xc3\xa9", 'p/dangling', 'p/empty/', 'p/inside', "p/new\nline", 'p/' . 'n' x 255, 'p/run', 'p/x/', 'p/x-first', 'p/x/data', 'p/x/y/', 'p/x/y/deep');
@want = sort { ($a =~ s/\/\z//r) cmp ($b =~ s/\/\z//r) } @want;

# tar.gz
my $answer = archive(['p']);
is $answer->{status}, 200, 'archive';
is_deeply [sort keys %{ $answer->{json} }], [qw(bytes content_base64 format)], 'its members';
is $answer->{json}{format}, 'tar.gz', 'tar.gz by default';
my $packed = decode_base64($answer->{json}{content_base64});
is $answer->{json}{bytes}, length $packed, 'bytes';
my @members = read_tar($packed);
is_deeply [map { $_->{name} =~ s/\/\z//r } @members], [map { s/\/\z//r } @want], 'everything, in order; no link that leaves, no FIFO';
my %member = map { ($_->{name} =~ s/\/\z//r) => $_ } @members;
ok $member{'p/x/data'}{content} eq AbxServer::slurp("$base/p/x/data"), 'content';
is_deeply [map { $member{"p/$_"}{mode} } qw(run x/data x x/y/deep)], [qw(750 604 751 400)], 'modes';
is $member{'p/run'}{time}, 1_600_000_000, 'a time';
is_deeply [@{ $member{'p/inside'} }{qw(type link)}], [2, 'x/data'], 'a link inside';
is $member{'p/absolute'}{link}, "$base/p/run", 'an absolute one';
is $member{'p/x'}{type}, 5, 'a directory';
is archive(['p'])->{json}{content_base64}, $answer->{json}{content_base64}, 'the same files make the same archive';

# zip
$answer = archive(['p'], 'zip');
is $answer->{json}{format}, 'zip', 'zip';
@members = read_zip(decode_base64($answer->{json}{content_base64}));
is_deeply [map { $_->{name} } @members], \@want, 'everything, in order';
%member = map { $_->{name} => $_ } @members;
ok $member{'p/x/data'}{content} eq AbxServer::slurp("$base/p/x/data"), 'content';
is $member{'p/x/y/deep'}{content}, 'deep', 'further down';

# Several paths, and how members are named.
sub members { return [map { $_->{name} =~ s/\/\z//r } read_tar(decode_base64(archive(@_)->{json}{content_base64}))] }
is_deeply members(['p/x/y', 'p/run', "$base/p/x/data"]), ['y', 'y/deep', 'run', 'data'], 'several, each from its last component';
is_deeply members(['p/x/y/']), ['y', 'y/deep'], 'a slash behind it';
is_deeply members(['link'])->[0], 'link', 'a link that is named is followed';
is scalar @{ members(['link']) }, scalar @want, 'with everything in it';
is_deeply members(['p/x/y/..'])->[0], 'x', 'where the last component says nothing it is the place';
is_deeply members(['p/run', 'p/x/../run', 'link/run']), ['run'], 'the same place once';
is_deeply members(['p/empty']), ['empty'], 'an empty directory';
AbxServer::spew("$base/\xff", 'bytes');
is_deeply members_of_twin([encode_base64("\xff", '')]), ["\xff"], 'bytes that are not UTF-8 are kept in a tar file';
sub members_of_twin { return [map { $_->{name} } read_tar(decode_base64($server->post('/files/archive', { paths_base64 => $_[0] })->{json}{content_base64}))] }
my ($zipped) = read_zip(decode_base64($server->post('/files/archive', { paths_base64 => [encode_base64("\xff", '')], format => 'zip' })->{json}{content_base64}));
is_deeply $zipped, { name => "\xef\xbf\xbd", content => 'bytes' }, 'a zip file has UTF-8 alone';

# raw
for my $format ('tar.gz', 'zip') {
	my $json = archive(['p'], $format)->{json};
	my $raw = archive(['p'], $format, headers => \%RAW);
	is $raw->{status}, 200, "raw $format";
	ok $raw->{content} eq decode_base64($json->{content_base64}), 'the same bytes';
	is $raw->{headers}{'content-type'}, 'application/octet-stream', 'Content-Type';
	is $raw->{headers}{'content-disposition'}, "attachment; filename=\"p.$format\"", 'Content-Disposition';
}
is archive(['p/run', 'p/x'], 'zip', headers => \%RAW)->{headers}{'content-disposition'}, 'attachment; filename="archive.zip"', 'of several paths';

# refusals
sub is_refused {
	my ($answer, $status, $type, $code, $name) = @_;

	is_deeply [$answer->{status}, @{ $answer->{json} }{qw(type code)}], [$status, $type, $code], "$name: $status $type";
}
for my $headers ({}, \%RAW) {
	is_refused(archive(['p', 'nope'], undef, headers => $headers), 404, 'FileNotFoundError', undef, 'a path that is missing');
	is_refused(archive(['p/run/x'], undef, headers => $headers), 404, 'FileNotFoundError', undef, 'below a file');
	is_refused(archive(['p', '/etc'], undef, headers => $headers), 403, 'PermissionError', 'path_not_allowed', 'a path outside');
	is_refused(archive(['p/outside'], undef, headers => $headers), 403, 'PermissionError', 'path_not_allowed', 'a link outside');
	is_refused(archive(['p'], 'rar', headers => $headers), 400, 'ValueError', undef, 'an unknown format');
	is_refused(archive([], undef, headers => $headers), 400, 'ValueError', undef, 'no path');
}
is_refused($server->post('/files/archive', { paths => 'p' }), 400, 'ValueError', undef, 'a path that is no list');
is_refused($server->post('/files/archive', { paths => [1] }), 400, 'ValueError', undef, 'a list of numbers');
is_refused($server->post('/files/archive', { paths => ["a\0b"] }), 400, 'ValueError', undef, 'a NUL');
is_refused($server->post('/files/archive', { paths => [''] }), 400, 'ValueError', undef, 'an empty path');
is_refused($server->post('/files/archive', {}), 400, 'ValueError', undef, 'no paths');
is_refused($server->post('/files/archive', { paths_base64 => ['*'] }), 400, 'ValueError', undef, 'no base64');
mkdir "$base/other";
AbxServer::spew("$base/other/run", 'another');
is_refused(archive(['p/run', 'other/run']), 400, 'ValueError', undef, 'two places under one name');

# Limits: 10000 files, 100 MiB.
mkdir "$base/many";
for my $i (1 .. 10_000) {
	open my $file, '>', "$base/many/$i" or die $!;
}
is archive(['many'])->{status}, 200, 'ten thousand files';
AbxServer::spew("$base/many/0", '');
is_refused(archive(['many']), 400, 'ValueError', undef, 'one more');
my %raw = (headers => { Accept => 'application/octet-stream' });
is_refused($server->post('/files/archive', { paths => ['p', 'many'] }, %raw), 400, 'ValueError', undef, 'raw, before the first byte');
unlink "$base/many/0";
is $server->post('/files/archive', { paths => ['many'] }, %raw)->{status}, 200, 'ten thousand files, raw';

# A file that cannot be compressed: past the limit the JSON form is an error, and the raw form a body that is cut off.
open my $random, '<:raw', '/dev/urandom' or die $!;
open my $big, '>:raw', "$base/big" or die $!;
for (1 .. 101) {
	read $random, my $piece, 1 << 20;
	print $big $piece;
}
close $big;
is_refused(archive(['big'], 'zip'), 413, 'ValueError', 'payload_too_large', 'an archive past the limit');
my $socket = $server->connect;
my $body = '{"paths": ["big"], "format": "zip"}';
syswrite $socket, "POST /files/archive HTTP/1.1\r\nHost: x\r\nAccept: application/octet-stream\r\nContent-Length: " . length($body) . "\r\n\r\n$body";
my ($tail, $total) = ('', 0);
while (my $n = sysread $socket, my $piece, 1 << 20) {
	$total += $n;
	$tail = substr $tail . $piece, -7;
}
cmp_ok $total, '>', 50_000_000, 'the raw form begins';
isnt $tail, "\r\n0\r\n\r\n", 'and does not end as if it were whole';

$server->stop;
done_testing;
