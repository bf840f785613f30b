# A server for a test that was started by a template's own code: t/helper/fake_worker.py, which speaks the protocol of the worker.
#
#   my $server = FakeWorker->start(table => { commands => [...], routes => [...] }, env => {...});
#   $server->tell(broken => "text");      # a file for the worker to find; undef removes it
package FakeWorker;

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(dirname);
use JSON::PP ();

use AbxServer;

our @ISA = ('AbxServer');

my $SCRIPT = abs_path(dirname(__FILE__) . '/../helper/fake_worker.py');

sub available {
	return system('python3 -c "import os; os.memfd_create" 2>/dev/null') == 0;
}

# The commands that the script knows, as a table has them.
sub command {
	my ($name, %more) = @_;

	return { name => $name, description => "Does $name.", args => [], hidden => JSON::PP::false, scopes => [], timeout => undef, %more };
}

sub route {
	my ($method, $path, %more) = @_;

	return { id => "$method $path", method => $method, path => $path, group => 'commands', summary => 'A route.', streaming => JSON::PP::false,
		 auth_required => JSON::PP::true, scopes => [], %more };
}

sub table {
	my (%part) = @_;

	return { version => 1, name => 'commands.py', groups => {}, commands => [], routes => [], %part };
}

# An object with directories, and no server yet.
sub prepare {
	my ($class, %arg) = @_;
	my $dir = AbxServer::temp_dir();
	my $self = $class->SUPER::prepare(%arg, command => $SCRIPT,
		env => { FAKE_DIR => "$dir", FAKE_ABXD => AbxServer::bin_dir() . '/abxd', %{ $arg{env} || {} } });

	$self->{fake} = $dir;
	$self->tell('table.json', AbxServer::encode_json(table(%{ $arg{table} || {} })));
	$self->tell($_, $arg{tell}{$_}) for keys %{ $arg{tell} || {} };
	return $self;
}

# A file for the script to find, whole from the first moment on; undef takes it away.
sub tell {
	my ($self, $name, $text) = @_;
	my $file = "$self->{fake}/$name";

	return unlink $file unless defined $text;
	AbxServer::spew("$file.new", $text);
	rename "$file.new", $file or die "$file: $!";
}

# The lines of a file that the script writes.
sub lines {
	my ($self, $name) = @_;
	my $text = AbxServer::slurp("$self->{fake}/$name");

	return split /\n/, defined $text ? $text : '';
}

# The pid of the last worker.
sub worker {
	my ($self) = @_;

	return ($self->lines('workers'))[-1];
}

sub run {
	my ($self, $name, $args, %option) = @_;

	return $self->post("/commands/$name", $args || {}, %option);
}

1;
