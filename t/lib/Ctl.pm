package Ctl;
# Running abxctl in tests, and a server of a few lines that answers what a test wants.
use strict;
use warnings;

use Exporter qw(import);
use File::Temp qw(tempdir);
use IO::Select;
use IO::Socket::INET;
use JSON::PP;
use POSIX ();
use Test::More;

use AbxServer;

our @EXPORT = qw(%arguments $abxctl $json $tmp against check ctl finish launch listener read_request response);

our $abxctl = AbxServer::bin_dir() . '/abxctl';

# A directory that other users can enter.
our $tmp = tempdir(CLEANUP => 1);
chmod 0755, $tmp;

# Without utf8(): all texts are bytes.
our $json = JSON::PP->new->canonical->allow_nonref;

# Nothing of the caller's own settings takes part.
delete @ENV{grep { /^ABX_(?!BUILDDIR|BIN_DIR|TEST)/ || /proxy$/i } keys %ENV};
$ENV{ABX_RUN_DIR} = "$tmp/none";
$SIG{PIPE} = 'IGNORE';

# Every subcommand with the operands that it needs.
our %arguments = (
	start => [], stop => [], status => [], reload => [], health => [], discover => [], call => ['x'], get => ['/x'],
	post => ['/x'], delete => ['/x'], capabilities => [], upload => ['/dev/null', 'x'], download => ['x', '-'],
	shell => ['x'], policy => ['check', '/dev/null'], pty => [], version => [],
);

# ---- running abxctl

# Start abxctl. Options: env (a hash of variables to set), in (its standard input), program, out (where standard output goes).
sub launch {
	my ($options, @args) = @_;
	my ($in, $out, $err) = map { File::Temp->new(DIR => $tmp) } 1 .. 3;
	AbxServer::spew("$in", $options->{in} // '');
	my $pid = fork // die "fork: $!";
	if ($pid == 0) {
		@ENV{keys %{$options->{env}}} = values %{$options->{env}};
		open STDIN, '<', "$in" or POSIX::_exit(99);
		open STDOUT, '>', $options->{out} // "$out" or POSIX::_exit(99);
		open STDERR, '>', "$err" or POSIX::_exit(99);
		exec { $options->{program} // $abxctl } 'abxctl', @args or POSIX::_exit(99);
	}
	return {pid => $pid, out => $out, err => $err, in => $in};
}

sub finish {
	my ($run) = @_;
	waitpid $run->{pid}, 0;
	return {status => $? & 127 ? "signal " . ($? & 127) : $? >> 8, out => AbxServer::slurp("$run->{out}"), err => AbxServer::slurp("$run->{err}")};
}

sub ctl {
	my $options = ref $_[0] ? shift : {};
	return finish(launch($options, @_));
}

# Check the exit status and both outputs: strings are compared, patterns matched.
sub check {
	my ($got, $status, $out, $err, $name) = @_;
	my $matches = sub { ref $_[1] ? $_[0] =~ $_[1] : $_[0] eq $_[1] };
	my $good = $got->{status} eq $status && $matches->($got->{out}, $out) && $matches->($got->{err}, $err);
	ok $good, $name or diag "status $got->{status}\nstdout <$got->{out}>\nstderr <$got->{err}>";
	return $good;
}

# ---- a server that answers what a test wants

sub listener {
	return IO::Socket::INET->new(Listen => 16, LocalAddr => '127.0.0.1', LocalPort => 0, ReuseAddr => 1) // die "listen: $!";
}

# Read one request from a connection.
sub read_request {
	my ($connection) = @_;
	my $text = '';
	while ($text !~ /\r\n\r\n/) {
		sysread $connection, $text, 65536, length $text or return undef;
	}
	my ($head, $body) = split /\r\n\r\n/, $text, 2;
	my ($first, @lines) = split /\r\n/, $head;
	my ($method, $target) = split / /, $first;
	my %headers = map { /^([^:]+):\s*(.*)$/ ? (lc $1, $2) : () } @lines;
	while (length $body < ($headers{'content-length'} // 0)) {
		sysread $connection, $body, 65536, length $body or return undef;
	}
	return {method => $method, target => $target, headers => \%headers, body => $body};
}

sub response {
	my ($status, $body, @headers) = @_;
	@headers = ('Content-Type: application/json; charset=utf-8') if !@headers;
	return join("\r\n", "HTTP/1.1 $status X", @headers, 'Content-Length: ' . length $body, 'Connection: close', '', $body);
}

# Run abxctl against a server that gives these answers, one each connection. Returns the outcome and the requests.
sub against {
	my ($answers, @args) = @_;
	my $options = ref $args[0] ? shift @args : {};
	my $socket = $options->{listener} // listener();
	$options->{env}{ABX_TEMPLATE_URL} = 'http://127.0.0.1:' . $socket->sockport . ($options->{prefix} // '');
	my $run = launch($options, @args);
	my @requests;
	for my $answer (@$answers) {
		# abxctl may end without having asked.
		until (IO::Select->new($socket)->can_read(0.05)) {
			return (finish($run), @requests) if !AbxServer::is_alive($run->{pid});
		}
		my $connection = $socket->accept or die "accept: $!";
		push @requests, read_request($connection);
		syswrite $connection, $answer;
		close $connection;
	}
	return (finish($run), @requests);
}

1;
