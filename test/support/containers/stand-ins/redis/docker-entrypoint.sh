#!/bin/sh
# The official image's Redis takes connections from other containers without a password; Debian's has to be told.
if [ "$1" = redis-server ]; then
  shift
  exec redis-server --protected-mode no "$@"
fi
exec "$@"
