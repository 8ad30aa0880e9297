# Run this once a minute, for example by cron. It writes the ids of campaigns that are no longer public to removals-*.json: delete
# these from your copy, if its own updated_at is earlier. It writes the campaigns that have changed to page-*.json: load them into
# your copy by id. Then remove the files. The first run fetches all campaigns.
api=https://api.example/api/v1
since=$(cat as-of.txt 2>/dev/null)
run=$(date -u +%Y%m%dT%H%M%S)-$(printf %07d $$)
steady=yes

# Writes all pages of a list, and keeps the watermark of the first.
pages() {
  url=$2
  page=0
  first=
  first_snapshot=
  last=
  from=
  while [ -n "$url" ]; do
    page=$((page + 1))
    file=$1-$run-$(printf %05d "$page").json
    status=$(curl -sS --retry 5 -D headers.txt -o "$file" -w '%{http_code}' \
      -H "X-API-Key: $PLEDGEVIEW_KEY" -H "X-API-Secret: $PLEDGEVIEW_SECRET" "$url") || exit 1
    if [ "$status" != 200 ]; then
      cat "$file" >&2
      rm "$file"
      # The operator may have switched the removals off.
      if [ "$1 $status" = 'removals 404' ]; then return; fi
      exit 1
    fi
    as_of=$(tr -d '\r' <headers.txt | sed -n 's/^[Xx]-[Dd]ata-[Aa]s-[Oo]f: //p')
    first=${first:-$as_of}
    snapshot=$(tr -d '\r' <headers.txt | sed -n 's/^[Xx]-[Ss]napshot-[Ii]d: //p')
    first_snapshot=${first_snapshot:-$snapshot}
    next=$(tr -d '\r' <headers.txt | sed -n 's/^[Ll]ink: <\(.*\)>; rel="next"$/\1/p')
    url=${next:+https://api.example$next}
    if [ "$snapshot" != "$first_snapshot" ]; then
      # The first snapshot ended on the way, and entries may have moved between the pages. Removals come with the earliest first, so
      # they go on from the last one of the page before.
      if [ "$1" = page ] || [ "$last" = "$from" ]; then
        steady=no
      else
        from=$last
        first_snapshot=
        url="$api/removals?limit=100&since=$from"
      fi
    fi
    last=$(sed -n 's/.*"updated_at":"\([^"]*\)".*/\1/p' "$file")
  done
}

pages removals "$api/removals?limit=100${since:+&since=$since}"
removals_as_of=$first
pages page "$api/projects?limit=100${since:+&updated_since=$since}"
# The earlier watermark is kept, and only after pages of one snapshot each. Otherwise the next run asks again from the old one.
as_of=$(printf '%s\n%s\n' "${removals_as_of:-$first}" "$first" | sort | head -n 1)
if [ "$steady" = yes ]; then echo "$as_of" >as-of.txt; fi
echo "$page pages, as of $as_of"
