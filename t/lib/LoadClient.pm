# A client for tests that make very many calls: one connection, one write a request, and no more of HTTP than our server speaks.
#
#   my $client = LoadClient->new($server);
#   my ($status, $body) = $client->post('/shell', '{"command": "true"}');
package LoadClient;

use strict;
use warnings;

use AbxServer;
use IO::Socket::INET;
use Socket qw(IPPROTO_TCP TCP_NODELAY);

sub new {
	my ($class, $server) = @_;

	return bless { server => $server, token => $server->{token} }, $class;
}

sub socket {
	my ($self) = @_;

	if (!$self->{socket}) {
		$self->{socket} = $self->{server}->connect;
		setsockopt $self->{socket}, IPPROTO_TCP, TCP_NODELAY, 1;
	}
	return $self->{socket};
}

sub request {
	my ($self, $method, $path, $content) = @_;
	my $socket = $self->socket;
	my $token = defined $self->{token} ? "X-Access-Token: $self->{token}\r\n" : '';
	my $length = defined $content ? 'Content-Length: ' . length($content) . "\r\n" : '';
	my $bytes = "$method $self->{server}{prefix}$path HTTP/1.1\r\nHost: x\r\n$token$length\r\n" . (defined $content ? $content : '');
	my ($got, $whole, $head) = ('');

	syswrite $socket, $bytes;
	until ($whole) {
		sysread $socket, $got, 1 << 20, length $got or die 'the server closed the connection';
		my $end = index $got, "\r\n\r\n";
		next if $end < 0;
		$head = substr $got, 0, $end;
		$whole = $head =~ /^content-length: (\d+)/mi ? length $got >= $end + 4 + $1 : substr($got, -5) eq "0\r\n\r\n";
	}
	delete $self->{socket} if $head =~ /^connection: close/mi;
	my ($status) = $head =~ m{\AHTTP/1\.1 (\d+)};
	$content = substr $got, length($head) + 4;
	# Chunks: a size in hex, and so many bytes.
	if ($head =~ /^transfer-encoding: chunked/mi) {
		my ($chunks, $size) = ($content);
		$content = '';
		$content .= substr $chunks, 0, $size, '' while $chunks =~ s/\A(?:\r\n)?([0-9a-f]+)\r\n// && ($size = hex $1);
	}
	return ($status, $content);
}

sub get {
	my ($self, $path) = @_;

	return $self->request('GET', $path);
}

sub post {
	my ($self, $path, $content) = @_;

	return $self->request('POST', $path, $content);
}

# Call the function ($client, $number) for each number below $n, $parallel at a time, in processes of their own. It returns false for a failure. Gives
# the number of failures.
sub each_of {
	my ($server, $n, $parallel, $function) = @_;
	my ($failures, @pids) = (0);

	for my $worker (0 .. $parallel - 1) {
		my $pid = fork();
		die "fork: $!" unless defined $pid;
		if (!$pid) {
			my $client = LoadClient->new($server);
			my $failed = 0;
			for (my $i = $worker; $i < $n; $i += $parallel) {
				$failed++ unless eval { $function->($client, $i) };
				warn $@ if $@;
			}
			POSIX::_exit($failed > 255 ? 255 : $failed);
		}
		push @pids, $pid;
	}
	for my $pid (@pids) {
		waitpid $pid, 0;
		$failures += $? >> 8 || ($? ? 1 : 0);
	}
	return $failures;
}

1;
