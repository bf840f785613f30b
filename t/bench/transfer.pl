#!/usr/bin/perl
# Files in and out: 1 MiB as base64 beside a threaded Python server; raw bytes beside lighttpd alone; memory during parallel transfers.
#
#   ABX_BUILDDIR=build t/bench/transfer.pl [rounds [seconds]]
#
# Needs wrk and python3. TMPDIR says where the files are; a directory in memory keeps the disk out of the figures. Rounds are interleaved, since machines
# drift: quote the medians and ratios.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use AbxServer;
use MIME::Base64;
use POSIX ();
use Time::HiRes qw(time sleep);

my ($rounds, $seconds) = (@ARGV, 5, 3);
my $MIB = 1 << 20;
my $RAW = 256 * $MIB;
my $CLIENT = AbxServer::build_dir() . '/t/bench/raw_client';
my @started;

END { kill 'KILL', @started; }

sub median {
	my @sorted = sort { $a <=> $b } @_;

	return $sorted[@sorted / 2];
}

sub run_beside {
	my (@command) = @_;
	my $pid = fork();

	if (!$pid) {
		open STDERR, '>', '/dev/null';
		{ no warnings; exec @command; }
		POSIX::_exit(127);
	}
	push @started, $pid;
}

sub wait_port {
	my ($port) = @_;

	AbxServer::wait_for(sub { IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port) }) or die "nothing on port $port";
}

my $server = AbxServer->start(env => { ABX_LOG_LEVEL => 'warning', ABX_MAX_UPLOAD_SIZE => 2 * $RAW });
my ($dir, $base) = ($server->dir, $server->base);

# The Python server, on the same directory.
my $python = AbxServer::free_port();
run_beside('python3', "$FindBin::Bin/python_server.py", $python, $base);
wait_port($python);

# lighttpd alone: files as they lie there, and bodies that nobody reads, spooled to where ours are.
my $plain = AbxServer::free_port();
mkdir "$dir/plain-spool";
AbxServer::spew("$dir/plain.conf", <<"END");
server.modules = ( "mod_fastcgi" )
server.bind = "127.0.0.1"
server.port = $plain
server.document-root = "$base"
server.upload-dirs = ( "$dir/plain-spool" )
server.max-request-size = 1048576
server.chunkqueue-chunk-sz = 131072
\$HTTP["url"] =~ "^/sink" {
  fastcgi.server = ( "" => (( "socket" => "$dir/sink.sock", "check-local" => "disable" )) )
}
END
my $sink = IO::Socket::UNIX->new(Local => "$dir/sink.sock", Listen => 64) or die "socket: $!";
my $pid = fork();
if (!$pid) {
	POSIX::dup2(fileno $sink, 0);
	{ no warnings; exec AbxServer::build_dir() . '/t/bench/constant_fcgi'; }
	POSIX::_exit(127);
}
push @started, $pid;
run_beside('/usr/sbin/lighttpd', '-D', '-f', "$dir/plain.conf");
wait_port($plain);

# ---- 1 MiB as base64

open my $random, '<:raw', '/dev/urandom' or die $!;
my $bytes;
read $random, $bytes, $MIB;
AbxServer::spew("$base/mib", $bytes);
AbxServer::spew("$dir/upload.lua", 'wrk.method = "POST"; wrk.headers["Content-Type"] = "application/json"; wrk.body = [[{"path": "up", "content_base64": "' . encode_base64($bytes, '') . '"}]]');

sub wrk {
	my ($port, $target, $connections, @script) = @_;
	my $threads = $connections > 1 ? 2 : 1;
	my $said = `wrk -t$threads -c$connections -d${seconds}s @script 'http://127.0.0.1:$port$target'`;
	my ($rate) = $said =~ m{Requests/sec:\s+([\d.]+)} or die "wrk: $said";

	print STDERR "$target: $said" if $said =~ /Non-2xx/;
	return $rate;
}

for my $connections (1, 16) {
	for my $case (['download', '/download?path=mib'], ['upload', '/upload', '-s', "$dir/upload.lua"]) {
		my ($name, $target, @script) = @$case;
		my %rates;

		for (1 .. $rounds) {
			push @{ $rates{$_->[0]} }, wrk($_->[1], $target, $connections, @script) for ['abx', $server->port], ['python', $python];
		}
		my ($ours, $theirs) = map { median(@{ $rates{$_} }) } qw(abx python);
		printf "1 MiB base64 %-8s  %2d connections  %6.0f requests/s, Python %6.0f: %.1f times\n", $name, $connections, $ours, $theirs, $ours / $theirs;
	}
}

# ---- 256 MiB raw

open my $big, '>:raw', "$base/big" or die $!;
print $big $bytes for 1 .. $RAW / $MIB;
close $big or die $!;

# Bytes per second of one transfer, in MB.
sub transfer {
	my (@args) = @_;
	my ($moved, $took) = `$CLIENT @args` =~ /(\d+) ([\d.]+)/ or die "@args failed";

	return $moved / $took / 1e6;
}

my %raw = (
	'download' => sub { transfer('get', $server->port, "'/download?path=big&raw=1'") },
	'download, lighttpd alone' => sub { transfer('get', $plain, '/big') },
	'upload' => sub { transfer('put', $server->port, "'/upload?path=up'", $RAW) },
	'upload, lighttpd\'s spool alone' => sub { transfer('put', $plain, '/sink', $RAW) },
);
my %speeds;
for (1 .. $rounds) {
	push @{ $speeds{$_} }, $raw{$_}->() for sort keys %raw;
}
printf "256 MiB raw %-32s %5.0f MB/s\n", $_, median(@{ $speeds{$_} }) for sort keys %raw;

# ---- memory during eight transfers at once

sub rss {
	my $sum = 0;

	for my $pid (@_) {
		my ($kib) = (AbxServer::slurp("/proc/$pid/status") || '') =~ /^VmRSS:\s+(\d+)/m;
		$sum += $kib || 0;
	}
	return $sum;
}

my @watched = ($server->responder('file_ops'), $server->lighttpd);
my @downloads = map { ['get', $server->port, '/download?path=big&raw=1'] } 1 .. 8;
my @uploads = map { ['put', $server->port, "/upload?path=up$_", $RAW] } 1 .. 8;
for my $way (['downloads', @downloads], ['uploads', @uploads]) {
	my ($name, @calls) = @$way;
	my $before = rss(@watched);
	my $peak = $before;
	my %running = map { my $call = $_; my $pid = fork(); if (!$pid) { open STDOUT, '>', '/dev/null'; exec $CLIENT, @$call } ($pid => 1) } @calls;

	while (%running) {
		my $now = rss(@watched);
		$peak = $now if $now > $peak;
		while ((my $ended = waitpid -1, POSIX::WNOHANG) > 0) {
			print STDERR "a client failed\n" if delete $running{$ended} && $?;
		}
		sleep 0.005;
	}
	printf "8 raw %-9s of 256 MiB at once: responder and lighttpd %d KiB before, %d KiB at the peak\n", $name, $before, $peak;
}
unlink glob "$base/up*";
$server->stop;
