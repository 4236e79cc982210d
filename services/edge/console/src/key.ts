// The key by which the gateway knows the person at this page: kept for this tab alone, sent in a header, and in no address.
const NAME = "tradewind-key";

/** The reason of a request that needs a key, or has an unknown one. */
export const NO_KEY = 10047;

function stored(): string {
  try {
    return sessionStorage.getItem(NAME) ?? "";
  } catch {
    return "";
  }
}

const key = stored();

export const hasKey = key !== "";

/** Headers of requests for data. */
export const credentials: Record<string, string> = hasKey ? { authorization: `Bearer ${key}` } : {};

/** Takes a key, or forgets it if empty, and starts the page again. */
export function changeKey(to: string): void {
  if (to) sessionStorage.setItem(NAME, to);
  else sessionStorage.removeItem(NAME);
  location.reload();
}

/** A command line that asks with the key of its environment. */
export function withKey(line: string): string {
  return hasKey ? line.replace(/^(curl|grpcurl) /, '$1 -H "authorization: Bearer $MESH_API_KEY" ') : line;
}
