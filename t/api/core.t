# The core group: health, capabilities, capabilities/check.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use AbxServer;
use Test::More;

my $server = AbxServer->start;
my $answer = $server->get('/health');

is $answer->{status}, 200, 'health';
is $answer->{content}, '{"status": "ok"}', 'its body, to the letter';
is $answer->{headers}{'content-type'}, 'application/json; charset=utf-8', 'content type';
is $answer->{headers}{'cache-control'}, 'no-store', 'no-store';
is $answer->{headers}{'x-content-type-options'}, 'nosniff', 'nosniff';
like $answer->{headers}{'x-request-id'}, qr/\A[0-9a-f]{16}\z/, 'a request id';
is $server->get('/health', headers => { 'X-Request-Id' => 'my.id-1' })->{headers}{'x-request-id'}, 'my.id-1', 'the caller\'s request id';
is $server->get('/health/?a=1&a=2')->{status}, 200, 'health looks at nothing but method and path';
is $server->get('/health', headers => { Origin => 'http://evil.example' })->{status}, 200, 'not at the origin either';

my $caps = $server->get('/capabilities')->{json};
my %total = (core => 3, commands => 2, file_ops => 12, process => 8, terminal => 6, system => 6, dev_tools => 3, browser => 7, agents => 70);
my %opt_in = map { $_ => 1 } qw(dev_tools browser agents);

is $caps->{api_version}, 2, 'api_version';
like $caps->{server_version}, qr/\A\d+\.\d+\.\d+\z/, 'server_version';
is_deeply $caps->{identity}, { id => 'anonymous', scopes => ['*'] }, 'local mode: anonymous may do everything';
is $caps->{policy}{preset}, 'default', 'preset';
is $caps->{policy}{revision}, '44136fa355b3678a', 'revision of no document';
ok !$caps->{policy}{configured}, 'no document is configured';
is_deeply [sort keys %{ $caps->{groups} }], [sort keys %total], 'the groups';
for my $group (sort keys %total) {
	is !!$caps->{groups}{$group}, !$opt_in{$group}, "$group is on or off";
	is $caps->{group_summary}{$group}{total}, $total{$group}, "$group: total";
	is $caps->{group_summary}{$group}{enabled}, $opt_in{$group} ? 0 : $total{$group}, "$group: enabled";
}
is scalar keys %{ $caps->{endpoints} }, 117, 'every endpoint is there';

my $health = $caps->{endpoints}{health};
is_deeply $health, { method => 'GET', path => '/health', group => 'core', summary => 'Liveness probe (anonymous).',
		     streaming => JSON::PP::false, enabled => JSON::PP::true, allowed => JSON::PP::true, reason => undef,
		     rule => undef, scopes => [], limits => {}, params => {} }, 'the entry of health';
my $shell = $caps->{endpoints}{shell};
is $shell->{limits}{timeout_seconds}, 300, 'a limit';
is $shell->{limits}{max_output_bytes}, 67108864, 'another one';
is_deeply $shell->{params}{command}, { type => 'string', required => JSON::PP::true, default => undef }, 'a parameter';
is $shell->{params}{timeout}{default}, 300, 'a default';
my $off = $caps->{endpoints}{code_run};
ok !$off->{enabled} && !$off->{allowed}, 'an endpoint that is off';
is $off->{reason}, 'endpoint_disabled', 'its reason';
is $off->{rule}, 'default:opt-in:dev_tools', 'its rule';
ok !exists $off->{limits} && !exists $off->{params}, 'its limits and parameters are left out';
is $caps->{endpoints}{pty_connect}{method}, 'WS', 'the WebSocket is listed';
is $caps->{endpoints}{pty_connect}{path}, '/pty', 'with its path';

# lighttpd picks the group by the path without dots; to us they are names, and name nothing.
for my $path ('/commands/..', '/commands/%2e%2e', '/process/..', '/pty/sessions/%2E%2E') {
	my $answer = $server->request($path =~ /commands/ ? 'POST' : 'GET', $path);
	is $answer->{status}, 404, "$path: 404";
	is_deeply $answer->{json}, { error => "Not found: $path", type => 'ValueError' }, 'as of a path that is none';
}

sub check {
	my ($body, %want) = @_;
	my $got = $server->post('/capabilities/check', $body);

	is $got->{status}, 200, "check $body->{endpoint}";
	is_deeply [sort keys %{ $got->{json} }], [sort qw(endpoint allowed code reason), $want{rule} ? 'rule' : ()], 'its members';
	is !!$got->{json}{allowed}, !$want{code}, 'allowed';
	is $got->{json}{code}, $want{code}, 'code';
	is $got->{json}{rule}, $want{rule}, 'rule';
	if ($want{code}) { ok length $got->{json}{reason}, 'a reason' } else { is $got->{json}{reason}, undef, 'no reason' }
}
check({ endpoint => 'upload' });
check({ endpoint => 'nothing' }, code => 'unknown_endpoint');
check({ endpoint => 'code_run' }, code => 'endpoint_disabled', rule => 'default:opt-in:dev_tools');
check({ endpoint => 'upload', path => 'new/file' });
check({ endpoint => 'upload', path => $server->base . '/x' });
check({ endpoint => 'upload', path => '/etc/passwd' }, code => 'path_not_allowed');
check({ endpoint => 'upload', path => '/no/such/place' }, code => 'path_not_allowed');
check({ endpoint => 'files_stat', path => '../../../etc' }, code => 'path_not_allowed');
symlink '/etc', $server->base . '/out' or die $!;
check({ endpoint => 'files_stat', path => 'out' });
check({ endpoint => 'files_delete', path => 'out' });
check({ endpoint => 'files_move', path => 'out' });
check({ endpoint => 'download', path => 'out' }, code => 'path_not_allowed');
check({ endpoint => 'files_stat', path => 'out/x' }, code => 'path_not_allowed');
check({ endpoint => $_, path => '.' }, code => 'path_not_allowed') for qw(files_delete files_move);
check({ endpoint => 'files_delete', path => 'x/..' }, code => 'path_not_allowed');
check({ endpoint => 'files_delete', path => 'no/such' });
check({ endpoint => 'files_list', path => '.' });
check({ endpoint => 'shell', path => '/etc' }, code => 'path_not_allowed');
check({ endpoint => 'commands_run', path => '/etc' }, code => 'path_not_allowed');
check({ endpoint => 'health', path => '/etc' });
check({ endpoint => 'env_set', variable => $_ }, code => 'variable_not_allowed') for qw(PATH home ABX_X abx_server_token);
check({ endpoint => 'env_set', variable => 'LANG' });
check({ endpoint => 'env_get', variable => 'MY_Secret' }, code => 'variable_not_allowed');
check({ endpoint => 'env_get', variable => 'PATH' });
check({ endpoint => 'shell', variable => 'ABX_X' }, code => 'variable_not_allowed');
check({ endpoint => 'shell', variable => 'PATH' });
is $server->post('/capabilities/check', { endpoint => 'env_set', variable => 'a=b' })->{status}, 400, 'check a variable that cannot be';
is $server->post('/capabilities/check', {})->{status}, 400, 'check without an endpoint';
is $server->post('/capabilities/check', { endpoint => 5 })->{status}, 400, 'check with a number';
is $server->post('/capabilities/check', '[]')->{status}, 400, 'check with an array';

my $enabled = AbxServer->start(env => { ABX_SERVER_ENABLED_GROUPS => 'dev_tools' });
$caps = $enabled->get('/capabilities')->{json};
ok $caps->{groups}{dev_tools}, 'a group that the environment enables';
is $caps->{endpoints}{code_run}{rule}, undef, 'no rule for what is allowed';
ok !$caps->{groups}{browser}, 'another opt-in group stays off';

done_testing;
