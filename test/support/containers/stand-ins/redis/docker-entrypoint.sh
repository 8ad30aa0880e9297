#!/bin/sh
# The official image's Redis accepts connections from other containers without a password. Debian's needs an option for that.
if [ "$1" = redis-server ]; then
  shift
  exec redis-server --protected-mode no "$@"
fi
exec "$@"
