"""Keys: the chain verifies, files are private, and what would fail later is refused at once."""

import datetime
import ipaddress
import stat

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.x509.verification import PolicyBuilder, Store

from tests.study.sites import SITES, study
from unpooled.study import keys as made_by
from unpooled.study import writing
from unpooled.study.certificates import hosts_of, read_certificate, server
from unpooled.study.config import StudyError


@pytest.fixture
def made(tmp_path):
    asked = study(address="study.hospital.org:9092")
    path = writing.write(asked, tmp_path / "study.toml")
    return made_by.make(asked, path, tmp_path / "keys", 30, ("10.0.0.7",))


@pytest.mark.parametrize("host", ["study.hospital.org", "localhost", "127.0.0.1", "10.0.0.7"])
def test_the_certificate_is_accepted_for_its_hosts(made, host):
    try:
        subject = x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        subject = x509.DNSName(host)
    store = Store([read_certificate(made.ca)])
    verifier = PolicyBuilder().store(store).build_server_verifier(subject)
    chain = verifier.verify(read_certificate(made.certificate), [])
    assert len(chain) == 2
    made_by.check_server(made, host)


def test_each_site_has_its_own_key_and_nobody_elses(made):
    seen = set()
    for site in SITES:
        folder = made.site(site)
        assert sorted(path.name for path in folder.iterdir()) == sorted(
            [f"{site}.key", "ca.crt", "study.toml"]
        )
        secret = serialization.load_ssh_private_key((folder / f"{site}.key").read_bytes(), None)
        public = serialization.load_ssh_public_key(made.public(site).read_bytes())
        assert secret.public_key() == public
        assert public.curve.name == "secp384r1"
        seen.add(made.public(site).read_text().split()[1])
        made_by.check_site(folder / f"{site}.key", folder / "ca.crt")
    assert len(seen) == len(SITES)


def test_private_files_are_private(made):
    secret = [made.key, made.ca.with_name("ca.key"), *(made.site(s) / f"{s}.key" for s in SITES)]
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in secret)
    (made.site("bern") / "bern.key").chmod(0o644)
    with pytest.raises(StudyError, match=r"others can read the private key .*chmod 600"):
        made_by.check_site(made.site("bern") / "bern.key", made.site("bern") / "ca.crt")


def test_nothing_is_written_over(made, tmp_path):
    before = made.key.read_bytes()
    with pytest.raises(StudyError, match="is there already: move it away first"):
        made_by.make(study(), tmp_path / "study.toml", tmp_path / "keys", 30)
    assert made.key.read_bytes() == before


def test_a_wrong_host_is_refused(made):
    with pytest.raises(StudyError, match=r"is for study.hospital.org, localhost, .* not for 'other.org'"):
        made_by.check_server(made, "other.org")
    assert "study.hospital.org" in hosts_of(read_certificate(made.certificate))


def test_an_expired_certificate_is_refused(tmp_path):
    path = writing.write(study(), tmp_path / "study.toml")
    old = made_by.make(study(), path, tmp_path / "keys", -1)
    yesterday = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1)
    with pytest.raises(StudyError, match=f"ca.crt expired on {yesterday:%d %B %Y}: make new keys"):
        made_by.check_server(old, "127.0.0.1")
    with pytest.raises(StudyError, match="expired on"):
        made_by.check_site(old.site("bern") / "bern.key", old.site("bern") / "ca.crt")


def test_an_expired_server_certificate_of_a_valid_authority_is_refused(made):
    own = read_certificate(made.certificate)
    ca_key = serialization.load_pem_private_key(made.ca.with_name("ca.key").read_bytes(), None)
    yesterday = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1)
    old = server(hosts_of(own), own.public_key(), read_certificate(made.ca), ca_key, yesterday)
    made.certificate.write_bytes(old.public_bytes(serialization.Encoding.PEM))
    with pytest.raises(StudyError, match=f"server.crt expired on {yesterday:%d %B %Y}: make new keys"):
        made_by.check_server(made, "study.hospital.org")


def test_keys_that_do_not_belong_together_are_refused(made, tmp_path):
    other = made_by.make(study(), writing.write(study(), tmp_path / "s.toml"), tmp_path / "other", 30)
    other.key.replace(made.key)
    with pytest.raises(StudyError, match=r"server.key is not the key of"):
        made_by.check_server(made, "127.0.0.1")
    other.certificate.replace(made.certificate)
    with pytest.raises(StudyError, match="was not signed by the authority"):
        made_by.check_server(made, "127.0.0.1")
    made.certificate.write_text("nonsense")
    with pytest.raises(StudyError, match="is not a certificate"):
        made_by.check_server(made, "127.0.0.1")
    made.certificate.unlink()
    with pytest.raises(StudyError, match="is missing: `unpooled study keys` makes the keys"):
        made_by.check_server(made, "127.0.0.1")
    with pytest.raises(StudyError, match="is missing: the coordinator hands over"):
        made_by.check_site(tmp_path / "no.key", made.ca)
    with pytest.raises(StudyError, match="is not a private key"):
        made_by.check_site(made.ca, made.ca)


def test_a_coordinators_key_that_is_damaged_or_locked(made):
    whole = made.key.read_bytes()
    secret = serialization.load_pem_private_key(whole, None)
    locked = secret.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"x"),
    )
    for text in (b"", b"nonsense", whole[:80], locked):
        made.key.write_bytes(text)
        with pytest.raises(StudyError, match=r"server\.key is not a private key that `unpooled study keys`"):
            made_by.check_server(made, "localhost")


def test_one_site_gets_a_new_key(made, tmp_path):
    """The others, the authority and the coordinator keep theirs; the old key is known to nobody."""

    def others():
        return {
            path: path.read_bytes()
            for path in sorted((tmp_path / "keys").rglob("*"))
            if path.is_file() and "bern" not in path.name and path.parent != made.site("bern")
        }

    before, old, secret = others(), made.public("bern").read_bytes(), made.site("bern") / "bern.key"
    old_secret = secret.read_bytes()
    made_by.renew(study(), tmp_path / "study.toml", tmp_path / "keys", "bern")
    assert others() == before
    assert secret.read_bytes() != old_secret
    assert made.public("bern").read_bytes() != old
    own = serialization.load_ssh_private_key(secret.read_bytes(), None)
    assert own.public_key() == serialization.load_ssh_public_key(made.public("bern").read_bytes())
    made_by.check_site(secret, made.site("bern") / "ca.crt")
    assert sorted(path.name for path in made.site("bern").iterdir()) == ["bern.key", "ca.crt", "study.toml"]
    assert sorted(path.name for path in (tmp_path / "keys").iterdir()) == sorted([*SITES, "coordinator"])


def test_a_site_without_keys_gets_some_and_a_stranger_none(made, tmp_path):
    five = study(sites=[*SITES, "chur"])
    made_by.renew(five, tmp_path / "study.toml", tmp_path / "keys", "chur")
    made_by.check_site(made.site("chur") / "chur.key", made.site("chur") / "ca.crt")
    with pytest.raises(StudyError, match="'brn' is not a site of the study; closest: 'bern'"):
        made_by.renew(five, tmp_path / "study.toml", tmp_path / "keys", "brn")
    with pytest.raises(StudyError, match=r"elsewhere/coordinator/ca.crt is missing"):
        made_by.renew(five, tmp_path / "study.toml", tmp_path / "elsewhere", "bern")


def test_the_authoritys_key_can_have_a_passphrase(tmp_path):
    path = writing.write(study(), tmp_path / "study.toml")
    made = made_by.make(study(), path, tmp_path / "keys", 30, passphrase=b"open sesame")
    secret = made.ca.with_name("ca.key").read_bytes()
    with pytest.raises(TypeError, match="encrypted"):
        serialization.load_pem_private_key(secret, None)
    own = serialization.load_pem_private_key(secret, b"open sesame")
    assert own.public_key() == read_certificate(made.ca).public_key()
    made_by.check_server(made, "127.0.0.1")  # which a study runs with, unasked
