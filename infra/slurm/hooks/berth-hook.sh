#!/bin/sh
# Notes for Berth's executor where its jobs begin and end. One file for three places of slurm.conf:
# Prolog and Epilog, run by slurmd on each node, and JobCompLoc with JobCompType=jobcomp/script, run
# by slurmctld. docs/slurm.md says how it is installed.
#
# It fails no job: what it does not note only makes Berth wait longer. Jobs of others are left alone.
PATH=/usr/sbin:/usr/bin:/sbin:/bin
umask 022
# A shell ends with an error where a file that it reads is missing, and a Prolog with one drains.
trap 'exit 0' EXIT
notes='' run=/run/berth-slurm
. "${0%/*}/berth-hook.conf"
[ -d "$notes" ] || exit 0

# Where slurmctld has forgotten a job, slurmd ends it without its comment and its user: these are in
# a file of this boot, which the Prolog left.
now_ms=$(date +%s%3N)
job=${SLURM_JOB_ID:-${JOBID:-}} node=${SLURMD_NODENAME:-}
own="$run/$node/$job"
case ${SLURM_SCRIPT_CONTEXT:-} in
prolog_slurmd)
    identity=${SLURM_JOB_COMMENT:-} uid=${SLURM_JOB_UID:-}
    file="begun.$job.$node" text="$uid $now_ms"
    ;;
epilog_slurmd)
    identity=${SLURM_JOB_COMMENT:-} uid=${SLURM_JOB_UID:-}
    [ -f "$own" ] && read -r uid identity < "$own"
    file="cleared.$job.$node" text="$uid $now_ms"
    ;;
'')
    [ -n "${JOBSTATE:-}" ] || exit 0
    # Some shells make UID their own.
    identity=${JOBNAME:-} uid=$(id -u "${USERNAME:-}" 2> /dev/null)
    file="ended.$job" text="$uid $now_ms $JOBSTATE ${EXITCODE:-0:0}"
    ;;
*) exit 0 ;;
esac

# All of this is written by the users of jobs: nothing else becomes the name of a file.
case $identity in
*[!A-Za-z0-9:/._-]*) exit 0 ;;
berth:*) ;;
*) exit 0 ;;
esac
case $file in
*[!A-Za-z0-9._-]*) exit 0 ;;
esac
[ "${#identity}" -le 200 ] || exit 0
folder="$notes/$(printf %s "$identity" | tr ':/' '+-')"

if [ "${SLURM_SCRIPT_CONTEXT:-}" = prolog_slurmd ]; then
    mkdir -p "$run/$node" && printf '%s %s\n' "$uid" "$identity" > "$own"
fi
# A shared folder may keep root out: root writes as the owner of the folder.
as_owner=''
if [ "$(id -u)" = 0 ]; then
    as_owner="setpriv --reuid=$(stat -c %u "$notes") --regid=$(stat -c %g "$notes") --clear-groups"
fi
# shellcheck disable=SC2016,SC2086  # the inner shell expands its own arguments; words are split
timeout -k 1 10 $as_owner sh -c '
    mkdir -p "$1" && echo "$3" > "$1/.$2" && mv -f "$1/.$2" "$1/$2" && touch "$4"
' hook "$folder" "$file" "$text" "$notes/bell" &&
    [ "${SLURM_SCRIPT_CONTEXT:-}" = epilog_slurmd ] && rm -f "$own"
exit 0
