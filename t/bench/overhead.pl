#!/usr/bin/perl
# What the server costs beyond the bare minimum: requests per second of /health and /files/stat beside a constant libfcgi responder behind a lighttpd of
# its own with the same settings; memory when idle; time from the start to the first /health.
#
#   ABX_BUILDDIR=build t/bench/overhead.pl [rounds [seconds]]
#
# Needs wrk. Rounds are interleaved, since machines drift: quote the medians and ratios.
use strict;
use warnings;

$| = 1;

use FindBin;
use lib "$FindBin::Bin/../lib";

use AbxServer;
use Fcntl;
use IO::Socket::UNIX;
use POSIX ();
use Time::HiRes qw(time sleep);

my ($rounds, $seconds) = (@ARGV, 5, 3);
my @started;

END { kill 'TERM', @started; }

sub median {
	my @sorted = sort { $a <=> $b } @_;

	return $sorted[@sorted / 2];
}

# The constant responder, on a socket that is its standard input, behind lighttpd with our settings. Returns its URL.
sub start_constant {
	my ($server) = @_;
	my $dir = $server->dir;
	my $port = AbxServer::free_port();
	my $socket = IO::Socket::UNIX->new(Local => "$dir/constant.sock", Listen => 4096) or die "socket: $!";
	my $conf = AbxServer::slurp($server->run . '/lighttpd.conf');

	chmod 0666, "$dir/constant.sock";
	mkdir "$dir/constant";
	$conf =~ s/^include .*\n//mg;
	$conf =~ s/^.*(?:error-handler|errorfile-prefix|socket-activation).*\n//mg;
	$conf =~ s/^server\.port = .*/server.port = $port/m;
	$conf =~ s/^server\.upload-dirs = .*/server.upload-dirs = ( "$dir\/constant" )/m;
	$conf .= qq{fastcgi.server = ( "" => (( "socket" => "$dir/constant.sock", "check-local" => "disable", "tcp-fin-propagate" => "enable" )) )\n};
	AbxServer::spew("$dir/constant.conf", $conf);
	for my $run ([AbxServer::build_dir() . '/t/bench/constant_fcgi'], ['/usr/sbin/lighttpd', '-D', '-f', "$dir/constant.conf"]) {
		my $pid = fork();
		if (!$pid) {
			open STDERR, '>', '/dev/null';
			POSIX::dup2(fileno $socket, 0) if @$run == 1;
			{ no warnings; exec @$run; }
			POSIX::_exit(127);
		}
		push @started, $pid;
	}
	my $http = HTTP::Tiny->new;
	AbxServer::wait_for(sub { $http->get("http://127.0.0.1:$port/")->{success} }) or die 'the constant responder does not answer';
	return "http://127.0.0.1:$port/health";
}

sub measure {
	my ($url, $connections) = @_;
	my $threads = $connections > 1 ? 2 : 1;
	my $said = `wrk -t$threads -c$connections -d${seconds}s --latency '$url'`;
	my ($rate) = $said =~ m{Requests/sec:\s+([\d.]+)} or die "wrk: $said";
	my ($number, $unit) = $said =~ /50%\s+([\d.]+)(us|ms)/;

	print STDERR "$url: $said" if $said =~ /Non-2xx/;
	return ($rate, $number * ($unit eq 'ms' ? 1000 : 1));
}

# Kibibytes of PSS of a process.
sub pss {
	my ($pid) = @_;
	my ($kib) = (AbxServer::slurp("/proc/$pid/smaps_rollup") || '') =~ /^Pss:\s+(\d+)/m;

	return $kib || 0;
}

sub start_time {
	my $begin = time;
	my $server = AbxServer->start;
	my $took = time - $begin;

	$server->stop;
	return 1000 * $took;
}

my $server = AbxServer->start(env => { ABX_LOG_LEVEL => 'warning' });
my $abxd = $server->pid;
sleep 1;
my @parts = map { [AbxServer::program_name($_), pss($_)] } $abxd, AbxServer::children_of($abxd);
my $sum = 0;
$sum += $_->[1] for @parts;
printf "idle memory (PSS): %d KiB = %s\n", $sum, join ', ', map { "$_->[0] $_->[1]" } @parts;
printf "start to the ready line, median of 5: %.0f ms\n", median(map { start_time() } 1 .. 5);

$server->post('/upload', { path => 'file', content_base64 => 'eA==' });
my %url = (constant => start_constant($server), health => $server->url('/health'), stat => $server->url('/files/stat?path=file'));
for my $connections (1, 16, 64) {
	my (%rates, %p50);
	for (1 .. $rounds) {
		for my $name (sort keys %url) {
			my ($rate, $p50) = measure($url{$name}, $connections);
			push @{ $rates{$name} }, $rate;
			push @{ $p50{$name} }, $p50;
		}
	}
	for my $name (sort keys %url) {
		printf "%2d connections  %-8s  %6.0f requests/s  p50 %5.0f us  %.2f of the constant responder\n", $connections, $name,
			median(@{ $rates{$name} }), median(@{ $p50{$name} }), median(@{ $rates{$name} }) / median(@{ $rates{constant} });
	}
}
