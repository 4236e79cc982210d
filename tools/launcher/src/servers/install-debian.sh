# Installs the Debian packages named as arguments without starting any service of theirs. Runs as root.
#
# PostgreSQL's package would create and start a "main" cluster, nats-server's would start a server on port 4222:
# the first is turned off for the time of the installation by a file that postgresql-common reads, the second by
# policy-rc.d, which every maintainer script asks before it starts a service.
set -eu
# Other users must be able to read what is installed; the caller's umask does not apply.
umask 022
export DEBIAN_FRONTEND=noninteractive

no_cluster=/etc/postgresql-common/createcluster.d/mesh-no-cluster.conf
policy=/usr/sbin/policy-rc.d
made_policy=no

clean_up() {
    rm -f "$no_cluster"
    if [ "$made_policy" = yes ]; then rm -f "$policy"; fi
}
trap clean_up EXIT
trap 'exit 1' HUP INT TERM

had_nats=no
if [ -e /lib/systemd/system/nats-server.service ] || [ -e /usr/lib/systemd/system/nats-server.service ]; then
    had_nats=yes
fi

mkdir -p /etc/postgresql-common/createcluster.d
echo 'create_main_cluster = false' > "$no_cluster"
if ! [ -e "$policy" ]; then
    made_policy=yes
    printf '#!/bin/sh\nexit 101\n' > "$policy"
    chmod 755 "$policy"
fi

# Old package lists may still do when the network does not.
apt-get -q -o DPkg::Lock::Timeout=300 update || true
apt-get -q -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "$@"

# Nor should it start at the next boot, unless it was here before us.
if [ "$had_nats" = no ] && command -v systemctl > /dev/null; then
    systemctl disable nats-server.service > /dev/null 2>&1 || true
fi
