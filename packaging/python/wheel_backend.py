"""
Makes the package's wheel for pip (PEP 517) with nothing but the standard library, so that `pip install packaging/python` works in an
image without a network: what other back-ends need would have to be fetched first.
"""

import base64
import hashlib
import os
import re
import tarfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
NAME = "agent_sandbox_server"
SUMMARY = "Named commands and routes in Python for the abx server, and a client of it"


def _version():
    with open(os.path.join(HERE, "agent_sandbox", "version.py")) as file:
        return re.search(r'__version__ = "([^"]+)"', file.read()).group(1)


def _metadata():
    return "Metadata-Version: 2.1\nName: agent-sandbox-server\nVersion: %s\nSummary: %s\nRequires-Python: >=3.8\n" % (_version(), SUMMARY)


def _modules():
    """The package's files: names in the archive, and contents."""
    for at, _, names in sorted(os.walk(os.path.join(HERE, "agent_sandbox"))):
        for name in sorted(names):
            if name.endswith(".py"):
                path = os.path.join(at, name)
                with open(path, "rb") as file:
                    yield os.path.relpath(path, HERE), file.read()


def _write_wheel(directory, files):
    info = "%s-%s.dist-info" % (NAME, _version())
    files += [(info + "/METADATA", _metadata().encode()),
              (info + "/WHEEL", b"Wheel-Version: 1.0\nGenerator: wheel_backend\nRoot-Is-Purelib: true\nTag: py3-none-any\n")]
    record = ""
    wheel = "%s-%s-py3-none-any.whl" % (NAME, _version())
    with zipfile.ZipFile(os.path.join(directory, wheel), "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files:
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record += "%s,sha256=%s,%d\n" % (name, digest, len(data))
            archive.writestr(name, data)
        archive.writestr(info + "/RECORD", record + info + "/RECORD,,\n")
    return wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return _write_wheel(wheel_directory, list(_modules()))


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    return _write_wheel(wheel_directory, [(NAME + ".pth", HERE.encode() + b"\n")])


def build_sdist(sdist_directory, config_settings=None):
    base = "%s-%s" % (NAME, _version())
    with tarfile.open(os.path.join(sdist_directory, base + ".tar.gz"), "w:gz") as archive:
        for name in ["pyproject.toml", "wheel_backend.py"] + [name for name, _ in _modules()]:
            archive.add(os.path.join(HERE, name), base + "/" + name)
        path = os.path.join(sdist_directory, "PKG-INFO")
        with open(path, "w") as file:
            file.write(_metadata())
        archive.add(path, base + "/PKG-INFO")
        os.unlink(path)
    return base + ".tar.gz"
