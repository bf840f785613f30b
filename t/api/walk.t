# Every endpoint of every group, by the programs' own lists: no credential, wrong method, wrong body, what is off, what is planned. And every row
# that is implemented is called with success by some test.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use AbxServer;
use Test::More;

my @GROUPS = qw(core commands file_ops process terminal system dev_tools browser agents);
my $server = AbxServer->start(env => { ABX_SERVER_TOKEN => 't', ABX_SERVER_ENABLED_GROUPS => 'dev_tools,browser,agents' }, token => 't');
my $default = AbxServer->start;
my $caps = $server->get('/capabilities')->{json}{endpoints};
my %seen;

sub rows_of {
	my ($group) = @_;
	my $program = AbxServer::bin_dir() . '/abx-' . ($group =~ tr/_/-/r);

	open my $list, '-|', $program, '--list-endpoints' or die "$program: $!";
	return map { AbxServer::decode_json($_) } <$list>;
}

# A path of the row, with something for its parameters.
sub path_of {
	my ($row) = @_;

	return $row->{path} =~ s/\{\w+\}/1/gr;
}

for my $group (@GROUPS) {
	for my $row (rows_of($group)) {
		my ($id, $method, $path) = ($row->{id}, $row->{method}, path_of($row));

		ok !$seen{$id}++, "$id: once";
		is $caps->{$id}{path}, $row->{path}, "$id: core knows it";
		is $caps->{$id}{group}, $group, "$id: of this group";
		next if $method eq 'WS';

		if (!$row->{public}) {
			my $anonymous = $server->request($method, $path, no_token => 1, $method eq 'GET' ? () : (content => '{}'));
			is $anonymous->{status}, 401, "$id: no credential";
			is $anonymous->{content}, '{"error": "unauthorized", "type": "AuthError"}', "$id: the 401 body";
		}
		my $wrong = $server->request('PUT', $path, content => '');
		is $wrong->{status}, 405, "$id: another method";
		like $wrong->{headers}{allow}, qr/\b$method\b/, "$id: Allow";
		is $server->request($method, "$path/", $method eq 'GET' ? () : (content => '[]'))->{status}, 400, "$id: a body that is no object, and a trailing slash"
			if $method eq 'POST' && $row->{implemented};
		is $server->request($method, "$path?q=1&q=2", $method eq 'GET' ? () : (content => '{}'))->{json}{code}, 'duplicate_parameter', "$id: a repeated parameter"
			if $row->{implemented} && !$row->{public};

		if (!$row->{implemented}) {
			my $planned = $server->request($method, $path, $method eq 'GET' ? () : (content => '{}'));
			is $planned->{status}, 501, "$id: planned";
			is $planned->{json}{code}, 'not_implemented', "$id: its code";
			ok exists $caps->{$id}{implemented} && !$caps->{$id}{implemented}, "$id: capabilities say so";
		} else {
			ok !exists $caps->{$id}{implemented}, "$id: implemented";
		}
		if ($group =~ /\A(?:dev_tools|browser|agents)\z/) {
			my $off = $default->request($method, $path, $method eq 'GET' ? () : (content => '{}'));
			is $off->{status}, 404, "$id: off by default";
			is $off->{json}{code}, 'endpoint_disabled', "$id: code";
			is $off->{json}{rule}, "default:opt-in:$group", "$id: rule";
			is $off->{json}{endpoint}, $id, "$id: endpoint";
		}
	}
}
is_deeply [sort keys %seen], [sort keys %$caps], 'the programs and core know the same endpoints';

done_testing;
