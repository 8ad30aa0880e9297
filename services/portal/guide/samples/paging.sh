# Follows the header "Link" from page to page. Each page becomes a file.
url="https://api.example/api/v1/projects?category=Games&limit=100"
page=0
while [ -n "$url" ]; do
  page=$((page + 1))
  curl -sS --fail --retry 5 -D headers.txt -o "page-$page.json" \
    -H "X-API-Key: $PLEDGEVIEW_KEY" -H "X-API-Secret: $PLEDGEVIEW_SECRET" "$url" || exit 1
  next=$(tr -d '\r' <headers.txt | sed -n 's/^[Ll]ink: <\(.*\)>; rel="next"$/\1/p')
  url=${next:+https://api.example$next}
done
echo "$page pages"
