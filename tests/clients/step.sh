#!/usr/bin/env bash
# One step of one client, for walk.sh: step.sh CLIENT generate|compile|call|downloads
. "$(dirname "$0")/lib.sh"
# shellcheck source=clients.sh
. "$HERE/clients.sh"

# The ZIP is whole and has the rows that its header promises; both downloads are what curl gets.
downloads() {
  local history="$GATEWAY/api/v2/networkhistory/export?fromBlock=$FROM_BLOCK&toBlock=$TO_BLOCK&table=TABLE_TRADES"
  local ledger="$GATEWAY/api/v2/ledgerentry/export?partyId=$PARTY&assetId=$ASSET&dateRange.endTimestamp=$UNTIL" promised rows
  unzip -tq "$OUT/history.zip"
  promised=$(curl -sSfI "$history" | tr -d '\r' | sed -n 's/^x-total-rows: //Ip')
  rows=$(($(unzip -p "$OUT/history.zip" | wc -l) - 1))
  echo "$rows rows, $promised promised"
  [ "$rows" = "$promised" ]
  curl -sSf "$history" | cmp - "$OUT/history.zip"
  curl -sSf "$ledger" | cmp - "$OUT/ledger.csv"
  [ "$(wc -l <"$OUT/ledger.csv")" -gt 1 ]
}

cd "$WORK/out/$1"
case $2 in
  downloads) downloads ;;
  *) "$2_$1" ;;
esac
