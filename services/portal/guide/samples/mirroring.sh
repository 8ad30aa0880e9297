# Run this once a minute, for example by cron. It writes the campaigns that have changed to page-*.json. Load them into
# your copy by id, then remove the files. The first run fetches all campaigns.
since=$(cat as-of.txt 2>/dev/null)
url="https://api.example/api/v1/projects?limit=100${since:+&updated_since=$since}"
run=$(date -u +%Y%m%dT%H%M%S)-$(printf %07d $$)
page=0
first=
first_snapshot=
steady=yes
while [ -n "$url" ]; do
  page=$((page + 1))
  curl -sS --fail --retry 5 -D headers.txt -o "page-$run-$(printf %05d "$page").json" \
    -H "X-API-Key: $PLEDGEVIEW_KEY" -H "X-API-Secret: $PLEDGEVIEW_SECRET" "$url" || exit 1
  as_of=$(tr -d '\r' <headers.txt | sed -n 's/^[Xx]-[Dd]ata-[Aa]s-[Oo]f: //p')
  first=${first:-$as_of}
  snapshot=$(tr -d '\r' <headers.txt | sed -n 's/^[Xx]-[Ss]napshot-[Ii]d: //p')
  snapshot=${snapshot:-$as_of}
  first_snapshot=${first_snapshot:-$snapshot}
  # Another snapshot: the first one ended on the way, and campaigns may have moved between the pages.
  [ "$snapshot" = "$first_snapshot" ] || steady=no
  next=$(tr -d '\r' <headers.txt | sed -n 's/^[Ll]ink: <\(.*\)>; rel="next"$/\1/p')
  url=${next:+https://api.example$next}
done
# The watermark moves only after a whole walk of one snapshot. Otherwise the next run asks again from the old one.
if [ "$steady" = yes ]; then echo "$first" >as-of.txt; fi
echo "$page pages, as of $first"
