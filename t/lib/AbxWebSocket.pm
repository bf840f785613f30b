# A WebSocket client for tests (RFC 6455), which can also misbehave.
#
#   my $ws = AbxWebSocket->connect(port => 9001, path => '/pty?session_id=x', headers => { Origin => '…' });
#   $ws->status;                                    # 101, or what the server answered instead
#   $ws->send_json({ type => 'input', data => "ls\n" });
#   my $message = $ws->next_json;                   # undef when the connection has ended
#   $ws->close_code;                                # what the server closed it with; 1006: it did not say
package AbxWebSocket;

use strict;
use warnings;

use AbxServer;
use Digest::SHA qw(sha1_base64);
use IO::Socket::INET;
use JSON::PP ();
use MIME::Base64 qw(encode_base64);
use Time::HiRes qw(time);

my $JSON = JSON::PP->new->utf8->allow_nonref;
my $KEY = encode_base64('0123456789abcdef', '');

# A connection and its handshake. `raw` is sent in the place of the handshake; `lines` are further header lines, as they are.
sub connect {
	my ($class, %arg) = @_;
	my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $arg{port}, Timeout => $AbxServer::PATIENCE,
					   $arg{rcvbuf} ? (Sockopts => [[Socket::SOL_SOCKET(), Socket::SO_RCVBUF(), $arg{rcvbuf}]]) : ())
		or die "connect: $!";
	my $self = bless { socket => $socket, in => '', messages => [], code => undef }, $class;
	my %headers = (Host => "127.0.0.1:$arg{port}", %{ $arg{headers} || {} });
	my $head = "GET $arg{path} HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n" .
		"Sec-WebSocket-Key: $KEY\r\n" . join('', map { "$_: $headers{$_}\r\n" } sort keys %headers) .
		join('', map { "$_\r\n" } @{ $arg{lines} || [] }) . "\r\n";

	$socket->setsockopt(Socket::IPPROTO_TCP(), Socket::TCP_NODELAY(), 1);
	$self->write_all(defined $arg{raw} ? $arg{raw} : $head . ($arg{more} || ''));
	until ($self->{in} =~ /\r\n\r\n/) {
		last unless $self->fill;
	}
	($self->{status}) = $self->{in} =~ m{\AHTTP/1\.1 (\d{3})};
	if (($self->{status} || 0) == 101) {
		$self->{in} =~ s/\A(.*?\r\n)\r\n//s;
		my $answer = $1;
		my $accept = sha1_base64("${KEY}258EAFA5-E914-47DA-95CA-C5AB0DC85B11") . '=';
		die "wrong accept key in $answer" unless $answer =~ /^Sec-WebSocket-Accept: \Q$accept\E\r$/mi;
	} else {
		my ($length) = $self->{in} =~ /^Content-Length: (\d+)\r$/mi;
		my ($head) = $self->{in} =~ /\A(.*?\r\n\r\n)/s;
		while (!defined $length || length($self->{in}) < length($head // '') + $length) {
			last unless $self->fill;
		}
		$self->{answer} = AbxServer::parse_response($self->{in});
	}
	return $self;
}

sub status { return $_[0]{status} }
sub answer { return $_[0]{answer} }
sub socket { return $_[0]{socket} }

sub write_all {
	my ($self, $bytes) = @_;

	local $SIG{PIPE} = 'IGNORE';
	while (length $bytes) {
		my $n = syswrite $self->{socket}, $bytes;
		return 0 unless $n;
		substr $bytes, 0, $n, '';
	}
	return 1;
}

# Read what has come, or wait for it. 0: the connection has ended, or patience has.
sub fill {
	my ($self, $patience) = @_;
	my $ready = '';

	vec($ready, fileno($self->{socket}), 1) = 1;
	my $end = time + (defined $patience ? $patience : $AbxServer::PATIENCE);
	while (1) {
		my $n = select(my $now = $ready, undef, undef, $end > time ? $end - time : 0);
		next if $n < 0;
		return 0 if !$n;
		my $got = sysread $self->{socket}, $self->{in}, 1 << 18, length $self->{in};
		$self->{ended} = 1 unless $got;
		return $got ? 1 : 0;
	}
}

# ---- frames

# A frame: opcode, final or not, masked or not, reserved bits.
sub frame {
	my ($opcode, $data, %option) = @_;
	my $len = length $data;
	my $first = ($option{continues} ? 0 : 0x80) | ($option{rsv} || 0) << 4 | $opcode;
	my $mask_bit = $option{unmasked} ? 0 : 0x80;
	my $head = $len < 126 ? pack('CC', $first, $mask_bit | $len) : $len < 65536 ? pack('CCn', $first, $mask_bit | 126, $len) :
		pack('CCQ>', $first, $mask_bit | 127, $len);

	return $head . $data if $option{unmasked};
	my $mask = "\x12\x34\x56\x78";
	return $head . $mask . ($data ^ substr($mask x ($len / 4 + 1), 0, $len));
}

sub send_frame {
	my ($self, @frame) = @_;

	return $self->write_all(frame(@frame));
}

sub send_text {
	my ($self, $text) = @_;

	return $self->send_frame(1, $text);
}

sub send_json {
	my ($self, $value) = @_;

	return $self->send_text($JSON->encode($value));
}

# The next frame that has come, without waiting: opcode, final, data; or nothing.
sub take_frame {
	my ($self) = @_;
	return if length $self->{in} < 2;
	my ($first, $second) = unpack 'CC', $self->{in};
	my ($len, $at) = ($second & 0x7f, 2);

	die 'the server masks its frames' if $second & 0x80;
	if ($len == 126) {
		return if length $self->{in} < 4;
		($len, $at) = (unpack('x2n', $self->{in}), 4);
	} elsif ($len == 127) {
		return if length $self->{in} < 10;
		($len, $at) = (unpack('x2Q>', $self->{in}), 10);
	}
	return if length $self->{in} < $at + $len;
	my $data = substr $self->{in}, $at, $len;
	substr $self->{in}, 0, $at + $len, '';
	return ($first & 0x0f, $first & 0x80, $data);
}

# The next message, as bytes. undef: the connection has ended (close_code tells how), or nothing came in `patience` seconds.
sub next_message {
	my ($self, $patience) = @_;
	my $end = time + (defined $patience ? $patience : $AbxServer::PATIENCE);

	while (1) {
		if (my ($opcode, $final, $data) = $self->take_frame) {
			if ($opcode == 8) {
				($self->{code}, $self->{reason}) = length $data >= 2 ? unpack('na*', $data) : (1005, '');
				$self->send_frame(8, $data);
				close $self->{socket};
				return undef;
			}
			if ($opcode == 9) {
				$self->{pings}++;
				$self->send_frame(10, $data);
			} elsif ($opcode < 8) {
				$self->{partial} = ($self->{partial} // '') . $data;
				return delete $self->{partial} if $final;
			}
			next;
		}
		return undef if $self->{ended} || !defined fileno $self->{socket};
		my $left = $end - time;
		return undef if $left <= 0;
		if (!$self->fill($left) && $self->{ended}) {
			$self->{code} //= 1006;
			return undef;
		}
	}
}

sub next_json {
	my ($self, $patience) = @_;
	my $message = $self->next_message($patience);

	return defined $message ? $JSON->decode($message) : undef;
}

# What the server closed the connection with, all messages before it dropped. undef: it did not.
sub close_code {
	my ($self, $patience) = @_;

	while (!defined $self->{code}) {
		last unless defined $self->next_message($patience);
	}
	return $self->{code};
}

sub close_reason { return $_[0]{reason} }

# ---- terminals

# A new session of the server, with a shell that reads no start-up files and has a plain prompt. Returns its id.
sub new_session {
	my ($server, %args) = @_;
	my $answer = $server->post('/pty/sessions', { shell => '/bin/sh', %args, env => { PS1 => '> ', HOME => $server->base, %{ $args{env} || {} } } });

	return $answer->{json}{session_id} || die "no session: $answer->{content}";
}

sub pty_port {
	my ($server) = @_;

	return $server->{env}{ABX_PTY_PORT};
}

# A client of a session that has been told of its start.
sub watch {
	my ($server, $id, %arg) = @_;
	my $ws = AbxWebSocket->connect(port => pty_port($server), path => "/pty?session_id=$id", %arg);
	my $message = $ws->next_json or die 'the session is gone: ' . ($ws->close_code // '');

	die "not started, but $message->{type}" unless ($message->{event} // '') eq 'started';
	return $ws;
}

# Collect output until it matches. Returns all of it since the last call, or undef. Other messages go to {events}.
sub expect {
	my ($self, $pattern, $patience) = @_;
	my $end = time + (defined $patience ? $patience : $AbxServer::PATIENCE);

	$self->{text} = '' unless defined $self->{text};
	until ($self->{text} =~ $pattern) {
		my $left = $end - time;
		my $message = $left > 0 ? $self->next_json($left) : undef;
		return undef unless $message;
		if ($message->{type} eq 'output') {
			$self->{text} .= $message->{data};
		} else {
			push @{ $self->{events} }, $message;
		}
	}
	return delete $self->{text};
}

sub type {
	my ($self, $data) = @_;

	return $self->send_json({ type => 'input', data => $data });
}

# The next message that is no output; what output comes before it is kept for expect().
sub next_event {
	my ($self, $patience) = @_;

	return shift @{ $self->{events} } if @{ $self->{events} || [] };
	while (my $message = $self->next_json($patience)) {
		return $message unless $message->{type} eq 'output';
		$self->{text} = ($self->{text} // '') . $message->{data};
	}
	return undef;
}

sub end {
	my ($self) = @_;

	close $self->{socket};
}

1;
