# Behind a gateway that routes by `Host: <port>-<id>.<domain>` or `X-Sandbox-Port`, asks for a token of its own in X-Access-Token, and passes it on
# beside our bearer token: HTTP, streams and WebSockets.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use AbxServer;
use AbxWebSocket;
use IO::Socket::INET;
use POSIX ();
use Test::More;

my ($program) = grep { -x } '/usr/sbin/lighttpd', '/usr/bin/lighttpd', '/usr/local/sbin/lighttpd';
plan skip_all => 'there is no lighttpd to be the gateway' if !$program;

my ($ours, $gates) = ('our-token', 'gate-token');
my $domain = 'abc123.sandbox.example.org';
my @started;

END { local $?; kill 'TERM', @started; waitpid $_, 0 for @started; }

# A gateway to the ports of a server. Returns the port that it listens on.
sub start_gateway {
	my ($server, $pty_port) = @_;
	my $dir = $server->dir . '/gateway';
	my $port = AbxServer::free_port();
	my %to = (9000 => $server->port, 9001 => $pty_port);

	mkdir $dir;
	mkdir "$dir/spool";
	my $routes = join '', map {
		qq(\$HTTP["host"] =~ "^$_->[0]-[a-z0-9]+\\.sandbox\\.example\\.org\$" { proxy.server = ( "" => (( "host" => "127.0.0.1", "port" => $_->[1] )) ) }\n) .
		qq(\$REQUEST_HEADER["X-Sandbox-Port"] == "$_->[0]" { proxy.server = ( "" => (( "host" => "127.0.0.1", "port" => $_->[1] )) ) }\n)
	} map { [$_, $to{$_}] } sort keys %to;
	AbxServer::spew("$dir/conf", <<"END");
server.modules = ( "mod_access", "mod_proxy" )
server.bind = "127.0.0.1"
server.port = $port
server.document-root = "$dir"
server.upload-dirs = ( "$dir/spool" )
server.errorlog = "$dir/log"
server.stream-response-body = 2
proxy.header = ( "upgrade" => "enable" )
$routes\$REQUEST_HEADER["X-Access-Token"] != "$gates" { url.access-deny = ( "" ) }
END
	my $pid = fork() // die "fork: $!";
	if (!$pid) {
		exec $program, '-D', '-f', "$dir/conf" or POSIX::_exit(127);
	}
	push @started, $pid;
	AbxServer::wait_for(sub { IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port) }) or die 'the gateway does not answer: ' . AbxServer::slurp("$dir/log");
	return $port;
}

# One request to a gateway, by hand: the Host header is what this is about.
sub ask {
	my ($port, $method, $path, $headers, $body) = @_;
	my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port) or die "connect: $!";
	my %all = (Host => "9000-$domain", 'X-Access-Token' => $gates, Connection => 'close', %{ $headers || {} });
	my $head = "$method $path HTTP/1.1\r\n" . join('', map { "$_: $all{$_}\r\n" } grep { defined $all{$_} } sort keys %all);

	$head .= 'Content-Length: ' . length($body) . "\r\n" if defined $body;
	print $socket "$head\r\n" . ($body // '');
	return AbxServer::parse_response(AbxServer::read_until($socket));
}

my %bearer = (Authorization => "Bearer $ours");
my $server = AbxServer->start(env => { ABX_SERVER_TOKEN => $ours }, token => $ours);
my $pty_port = AbxWebSocket::pty_port($server);
my $gate = start_gateway($server, $pty_port);
my %by_port = (Host => 'gateway.example.org', 'X-Sandbox-Port' => 9000);

subtest 'HTTP' => sub {
	for (['by host', {}], ['by X-Sandbox-Port', \%by_port]) {
		my ($name, $how) = @$_;
		is_deeply ask($gate, 'GET', '/health', $how)->{json}, { status => 'ok' }, "$name: health";
		is ask($gate, 'GET', '/capabilities', $how)->{status}, 401, "$name: the gateway's token alone is none of ours";
		is ask($gate, 'GET', '/capabilities', { %$how, %bearer })->{json}{identity}{id}, 'admin', "$name: ours beside it is";
		is ask($gate, 'GET', '/capabilities', { %$how, %bearer, 'X-Access-Token' => undef })->{status}, 403, "$name: (the gateway wants its own)";
		my $answer = ask($gate, 'POST', '/shell', { %$how, %bearer }, '{"command": "echo hello"}');
		is $answer->{json}{stdout}, "hello\n", "$name: a command";
		ok $answer->{headers}{'x-request-id'}, "$name: its id";
		is ask($gate, 'GET', '/nothing', { %$how, %bearer })->{json}{error}, 'Not found: /nothing', "$name: our errors, not the gateway's";
	}
	is ask($gate, 'GET', '/health', { Host => 'elsewhere.example.org' })->{status}, 404, 'another host is not routed to us';
	my $data = join '', map { chr(33 + $_ % 90) } 1 .. 3_000_000;
	my $answer = ask($gate, 'POST', '/upload?path=big', { %bearer, 'Content-Type' => 'application/octet-stream' }, $data);
	is $answer->{json}{bytes}, 3_000_000, 'a large upload';
	ok ask($gate, 'GET', '/download?path=big&raw=1', \%bearer)->{content} eq $data, 'and its download';
	is ask($gate, 'POST', '/shell', \%bearer, 'x' x (10 * 1024 * 1024 + 1))->{json}{code}, 'payload_too_large', 'a body that is too large';
};

subtest 'streams' => sub {
	my $go = $server->base . '/go';
	my $body = '{"command": "sh -c \'echo first; until [ -e go ]; do sleep 0.05; done; echo last\'"}';
	my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $gate) or die "connect: $!";

	print $socket "POST /shell/stream HTTP/1.1\r\nHost: 9000-$domain\r\nX-Access-Token: $gates\r\nAuthorization: Bearer $ours\r\nConnection: close\r\n" .
		'Content-Length: ' . length($body) . "\r\n\r\n$body";
	my $got = AbxServer::read_until($socket, sub { $_[0] =~ /first/ });
	like $got, qr/\AHTTP\/1\.1 200 .*text\/event-stream.*event: stdout\ndata: \{"data": "first"\}\n\n/s, 'an event is there before the next is written';
	unlike $got, qr/last/, '(which it is not yet)';
	AbxServer::spew($go, '');
	like AbxServer::read_until($socket), qr/"last".*event: exit\ndata: \{"exit_code": 0\}\n\n/s, 'and the end comes through';
};

subtest 'WebSocket' => sub {
	my $id = AbxWebSocket::new_session($server);

	for (['the pty port by host', "9001-$domain", {}], ['by X-Sandbox-Port', 'gateway.example.org', { 'X-Sandbox-Port' => 9001 }],
	     ['/pty of the main port', "9000-$domain", {}]) {
		my ($name, $host, $more) = @$_;
		my %headers = (Host => $host, 'X-Access-Token' => $gates, %$more);
		my $ws = AbxWebSocket->connect(port => $gate, path => "/pty?session_id=$id", headers => { %headers, %bearer });
		is $ws->status, 101, "$name: connected" or next;
		is $ws->next_json->{event}, 'started', "$name: started";
		$ws->send_json({ type => 'input', data => "echo \$((40+2))-$name\n" });
		my $text = '';
		while ($text !~ /42-\Q$name\E/) {
			my $message = $ws->next_json or last;
			$text .= $message->{data} // '';
		}
		like $text, qr/42-\Q$name\E/, "$name: both ways";
		$ws->end;
		$ws = AbxWebSocket->connect(port => $gate, path => "/pty?session_id=$id&token=$ours", headers => \%headers);
		is $ws->next_json->{event}, 'started', "$name: our token in the query";
		$ws->end;
		$ws = AbxWebSocket->connect(port => $gate, path => "/pty?session_id=$id", headers => \%headers);
		is $ws->next_json, undef, "$name: without our token nothing comes";
		is $ws->close_code, 4001, "$name: but the code that says why";
	}
};
$server->stop;

subtest 'local mode: pages of the sandbox itself may call, others may not' => sub {
	my $local = AbxServer->start;
	my $port = start_gateway($local, AbxWebSocket::pty_port($local));

	is ask($port, 'GET', '/capabilities', { Origin => "https://9000-$domain" })->{status}, 200, 'the page of this host';
	is ask($port, 'GET', '/capabilities', { Origin => 'https://evil.example.org' })->{json}{code}, 'origin_not_allowed', 'another page';
	is ask($port, 'GET', '/capabilities', { %by_port, Origin => 'https://gateway.example.org' })->{status}, 200, 'the page of the gateway';
	$local->stop;
};

done_testing;
