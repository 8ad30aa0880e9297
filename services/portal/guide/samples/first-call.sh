curl -sS \
  -H "X-API-Key: $PLEDGEVIEW_KEY" \
  -H "X-API-Secret: $PLEDGEVIEW_SECRET" \
  "https://api.example/api/v1/projects?status=LIVE&limit=3"
