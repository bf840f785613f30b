# What a policy does to terminals: endpoints that are off, scopes, identities, and a reload while sessions run.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use AbxServer;
use AbxWebSocket;
use Test::More;

my $dir = AbxServer::temp_dir();
my $file = "$dir/policy.json";

sub policy {
	my ($value) = @_;

	AbxServer::spew("$file.new", AbxServer::encode_json({ version => 1, %$value }));
	rename "$file.new", $file or die $!;
}

my %people = (identities => [
	{ id => 'ci', token_env => 'CI_TOKEN', scopes => ['pty:*'] },
	{ id => 'reader', token_env => 'READER_TOKEN', scopes => ['files:read'] },
]);
policy({ %people, endpoints => { pty_connect => { scopes => ['pty:connect'] } } });
my $server = AbxServer->start(env => { ABX_SERVER_POLICY => $file, CI_TOKEN => 'ci-token', READER_TOKEN => 'reader-token' }, token => 'ci-token');
my $port = AbxWebSocket::pty_port($server);

# Connect as somebody: "started", or the close code and its reason; "refused" when nobody listens.
sub outcome {
	my ($id, $token) = @_;
	my $ws = eval { AbxWebSocket->connect(port => $port, path => "/pty?session_id=$id&token=$token") } or return 'refused';
	my $first = $ws->next_json;

	$ws->end;
	return $first ? $first->{event} : ($ws->close_code // 'lost') . ' ' . ($ws->close_reason // '');
}

my $answer = $server->post('/pty/sessions', { shell => '/bin/sh' });
my $id = $answer->{json}{session_id};
is $answer->{json}{ws_url}, "ws://localhost:$port/pty?session_id=$id", 'with identities there is no token in ws_url';
is outcome($id, 'ci-token'), 'started', 'an identity that has the scope';
is outcome($id, 'reader-token'), '4003 missing_scope', 'one that has not';
is outcome('none', 'reader-token'), '4003 missing_scope', 'which does not learn what sessions there are';
is outcome($id, 'other'), '4001 unauthorized', 'a stranger';

# A reload.
sub reload {
	my ($value, $id, $expected, $name) = @_;

	policy($value);
	kill 'HUP', $server->pid;
	ok AbxServer::wait_for(sub { outcome($id, 'ci-token') eq $expected }), "$name: $expected" or diag outcome($id, 'ci-token');
}

my $ws = AbxWebSocket->connect(port => $port, path => "/pty?session_id=$id&token=ci-token");
$ws->next_json;
reload({ %people, endpoints => { pty_connect => { enabled => JSON::PP::false } } }, $id, '4003 endpoint_disabled', 'pty_connect off');
$ws->type("echo st\"\"ill\n");
ok $ws->expect(qr/still/), 'who is connected stays so';
reload({ %people }, $id, 'started', 'and on again');

# How often, and how many at a time: the gate's counters. A refused call is an HTTP answer.
{
	my $connect = sub { return AbxWebSocket->connect(port => $port, path => "/pty?session_id=$id&token=ci-token") };
	my $limit = sub {
		policy({ %people, endpoints => { pty_connect => { limits => { @_ } } } });
		kill 'HUP', $server->pid;
	};
	my @held;

	# Those who came before it was in force do not count.
	$limit->(max_concurrent => 2);
	ok AbxServer::wait_for(sub { push @held, $connect->(); $held[-1]->status == 429 }), 'not too many at a time';
	like $held[-1]->answer->{content}, qr/"type": "ResourceError", "code": "rate_limited"/, 'which is told';
	@held = ();
	for my $name ('one', 'a second') {
		ok AbxServer::wait_for(sub { push @held, $connect->(); $held[-1]->status == 101 }), $name;
	}
	is $connect->()->status, 429, 'but no third';
	pop @held;
	ok AbxServer::wait_for(sub { push @held, $connect->(); $held[-1]->status == 101 }), 'before one has gone';
	$limit->(rate => '1/h');
	ok AbxServer::wait_for(sub { push @held, $connect->(); $held[-1]->answer && $held[-1]->answer->{content} =~ /RateLimitError/ }), 'one an hour';
	like $held[-1]->answer->{headers}{'retry-after'}, qr/\A[1-9]\d*\z/, 'and when there is another';
}
reload({ %people }, $id, 'started', 'without them');
reload({ %people, groups => { terminal => JSON::PP::false } }, $id, 'refused', 'all of terminal off closes the port');
is $ws->close_code, 1001, 'and its connections';
ok AbxServer::wait_for(sub { !$server->get('/capabilities')->{json}{groups}{terminal} }), 'the group is off';
reload({ %people }, $id, '4004 unknown session', 'and on again, without the old sessions');
ok AbxServer::wait_for(sub { $server->post('/pty/sessions', { shell => '/bin/sh' })->{status} == 200 }), 'new ones can be opened';
AbxServer::spew($file, 'rubbish');
kill 'HUP', $server->pid;
ok AbxServer::wait_for(sub { $server->log_text =~ /not taken/ }), 'a bad policy';
is outcome('none', 'ci-token'), '4004 unknown session', 'changes nothing';
unlike $server->log_text, qr/ci-token|reader-token/, 'no token is in the log';
is $server->stop, 0, 'the server stops';

# Off from the start.
policy({ groups => { terminal => JSON::PP::false } });
my $off = AbxServer->start(env => { ABX_SERVER_POLICY => $file });
ok !IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => AbxWebSocket::pty_port($off)), 'off from the start: nobody listens';
is $off->post('/pty/sessions', {})->{json}{code}, 'endpoint_disabled', 'and the endpoints are off';
is scalar(grep { AbxServer::program_name($_) eq 'abx-ptyd' } AbxServer::children_of($off->pid)), 0, 'there is no daemon';
for my $path ('/pty', '/pty/', '/pty?session_id=000000000000') {
	my $ws = AbxWebSocket->connect(port => $off->port, path => $path);
	is $ws->status, 404, "$path on the web server's port";
	is_deeply $ws->answer->{json}, { error => 'Not found: ' . $path =~ s/\?.*//r, type => 'ValueError' }, 'is no path';
}
done_testing;
