#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A whole fleet on one machine: a broker, a store, and three machines, which are network namespaces. Each machine has a
# recorder, an agent and a load. Asks all of them for the same seconds, shows what happened, and stops everything.
# ./dev fleet runs it with the programs of the build. Run it as root.
#
#   fleet.sh FOLDER    writes all its files to FOLDER
#
# The programs are found by PATH. S3RVER is the folder of the npm package s3rver.
set -euo pipefail

FOLDER=$(mkdir -p "$1" && cd "$1" && pwd)
EXAMPLES=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
HUB=10.77.0.1 # broker, store and operator
MACHINES=(db-1:role=db web-1:role=web web-2:role=web)
STARTED=()

note() {
	echo
	echo "== $*"
}

die() {
	echo "fleet.sh: $*" >&2
	tail -qn 5 "$FOLDER"/*.log >&2 || true
	exit 1
}

# Starts a program in the background. The kernel ends it if this script is killed.
start() { # LOG COMMAND...
	local log=$FOLDER/$1.log
	shift
	setpriv --pdeathsig KILL "$@" >>"$log" 2>&1 </dev/null &
	STARTED+=($!)
}

stop_all() {
	local i
	trap '' TERM INT
	for ((i = ${#STARTED[@]} - 1; i >= 0; i--)); do
		kill "${STARTED[i]}" 2>/dev/null || true
	done
	wait
}

wait_for() { # WHAT COMMAND...
	local what=$1 tries=600
	shift
	until "$@"; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || die "there is still no $what"
		sleep 0.1
	done
}

# Runs a command in the network namespace, and with the host name, of the process PID.
inside() { # PID COMMAND...
	nsenter -t "$1" -n -u -- "${@:2}"
}

declare -A SPACE

# Makes a network namespace with a host name. It ends with the process that holds it.
make_space() { # NAME
	# shellcheck disable=SC2016 # expanded by the inner shell
	start "$1-space" unshare -n -u sh -c 'hostname "$1" && ip link set lo up && echo ready && exec sleep infinity' sh "$1"
	SPACE[$1]=${STARTED[-1]}
	wait_for "namespace $1" grep -qsx ready "$FOLDER/$1-space.log"
}

connect() { # NAME NUMBER: a link from the machine to the bridge of the hub
	inside "${SPACE[hub]}" ip link add "m$2" type veth peer name eth0 netns "${SPACE[$1]}"
	inside "${SPACE[hub]}" ip link set "m$2" master br0 up
	inside "${SPACE[$1]}" ip addr add "10.77.1.$2/16" dev eth0
	inside "${SPACE[$1]}" ip link set eth0 up
}

fleet_section() { # LABELS
	cat <<-EOF
	[Fleet]
	Enabled=yes
	Servers=nats://$HUB:4222
	Labels=$1
	Upload=s3://flight/fleet
	UploadEndpoint=http://$HUB:4568
	UploadCredentials=$FOLDER/store.keys
	EOF
}

start_hub() {
	make_space hub
	inside "${SPACE[hub]}" ip link add br0 type bridge
	inside "${SPACE[hub]}" ip addr add $HUB/16 dev br0
	inside "${SPACE[hub]}" ip link set br0 up
	mkdir -p "$FOLDER/broker" "$FOLDER/store"
	printf 'listen: "%s:4222"\njetstream { store_dir: "%s" }\n' $HUB "$FOLDER/broker" >"$FOLDER/broker.conf"
	start broker nsenter -t "${SPACE[hub]}" -n -u -- nats-server -c "$FOLDER/broker.conf"
	wait_for broker grep -qs "Server is ready" "$FOLDER/broker.log"
	# s3rver accepts only these keys.
	printf '[default]\naws_access_key_id = S3RVER\naws_secret_access_key = S3RVER\n' >"$FOLDER/store.keys"
	chmod 600 "$FOLDER/store.keys"
	start store nsenter -t "${SPACE[hub]}" -n -u -- node "$S3RVER/bin/s3rver.js" -d "$FOLDER/store" -a $HUB -p 4568 \
		--configure-bucket flight
	wait_for store grep -qs listening "$FOLDER/store.log"
	fleet_section "" | grep -v ^Labels= >"$FOLDER/operator.conf"
}

# Starts the load, the recorder and the agent of a machine. The recorder records only the load, because all these machines
# share one kernel.
start_machine() { # NAME LABELS NUMBER
	local home=$FOLDER/$1 load=(ask 10.77.1.1)
	[ "$3" != 1 ] || load=(serve 10.77.1.1)
	mkdir -p "$home/agent"
	fleet_section "$2" >"$home/flightrecd.conf"
	make_space "$1"
	connect "$1" "$3"
	start "$1-load" nsenter -t "${SPACE[$1]}" -n -u -- python3 "$EXAMPLES/slow-request.py" "${load[@]}"
	[ "$3" != 1 ] || wait_for "data base" grep -qs serving "$FOLDER/$1-load.log"
	start "$1-recorder" nsenter -t "${SPACE[$1]}" -u -- flightrecd --config "$home/flightrecd.conf" -M 16M -p "${STARTED[-1]}" \
		-o "$home" --socket "$home/control"
	wait_for "recording on $1" grep -qs recording "$FOLDER/$1-recorder.log"
	start "$1-agent" nsenter -t "${SPACE[$1]}" -n -u -- flightrec-agent --config "$home/flightrecd.conf" \
		--socket "$home/control" --state "$home/agent"
}

fleet() {
	echo "\$ flightrecctl fleet $*"
	inside "${SPACE[hub]}" flightrecctl fleet "$@" --config "$FOLDER/operator.conf"
}

has_three_machines() {
	[ "$(inside "${SPACE[hub]}" flightrecctl fleet status --json=short --config "$FOLDER/operator.conf" 2>/dev/null |
		grep -o '"machine"' | wc -l)" = ${#MACHINES[@]} ]
}

main() {
	local number=0 machine id
	trap stop_all EXIT
	note "the hub: a broker (nats-server with JetStream) and a store (s3rver), in a network namespace"
	start_hub
	note "the operator makes the streams, once for each fleet"
	fleet setup || [ $? = 7 ] # this store does not remove old objects by itself, and setup says so
	note "three machines, each in a network namespace, with a recorder and an agent; web-1 and web-2 ask db-1"
	for machine in "${MACHINES[@]}"; do
		number=$((number + 1))
		start_machine "${machine%%:*}" "${machine#*:}" $number
	done
	wait_for "presence of all machines" has_three_machines
	fleet status
	note "some requests are slow, and nobody knows why"
	wait_for "slow request" grep -qs took "$FOLDER/web-1-load.log" "$FOLDER/web-2-load.log"
	tail -qn 2 "$FOLDER"/web-*-load.log
	note "the last 8 s of all machines, with one command"
	fleet dump --last 8s --reason "slow requests" --wait-stored
	note "the index of the broker knows them, also if no machine is up"
	fleet list
	id=$(inside "${SPACE[hub]}" flightrecctl fleet list --json=short --config "$FOLDER/operator.conf" |
		grep -o '[0-9]\{8\}T[0-9]\{6\}Z-[0-9a-f]\{8\}' | head -n 1)
	note "get the dumps from the store"
	fleet get "$id" -o "$FOLDER"
	note "what happened, on one clock"
	flightrec-report explain "$FOLDER/$id"
	flightrec-report report --html -q -o "$FOLDER/page.html" "$FOLDER/$id"
	note "everything is stopped; the files are in $FOLDER; a page with a lane for each machine: $FOLDER/page.html"
}

[ "$(id -u)" = 0 ] || die "network namespaces and a recorder of other processes need root"
main
