#!/bin/sh
echo "$*" > CALLED
mkdir -p TARGET/release
while [ $# -gt 0 ]; do
    [ "$1" = --bin ] && cp /bin/true "TARGET/release/$2"
    shift
done
