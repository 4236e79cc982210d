// CRC-32C (Castagnoli), eight bytes at a time: what the gateway's Repr-Digest is made of.

const TABLES: Uint32Array[] = [];

function tables(): Uint32Array[] {
  if (TABLES.length > 0) return TABLES;
  for (let slice = 0; slice < 8; slice += 1) {
    const table = new Uint32Array(256);
    for (let byte = 0; byte < 256; byte += 1) {
      let value = slice === 0 ? byte : TABLES[slice - 1]![byte]!;
      if (slice === 0) for (let bit = 0; bit < 8; bit += 1) value = (value >>> 1) ^ (value & 1 ? 0x82f63b78 : 0);
      else value = (value >>> 8) ^ TABLES[0]![value & 0xff]!;
      table[byte] = value >>> 0;
    }
    TABLES.push(table);
  }
  return TABLES;
}

/** The checksum of all bytes so far, with these behind them; begins with 0. */
export function crc32c(so_far: number, bytes: Uint8Array): number {
  const [t0, t1, t2, t3, t4, t5, t6, t7] = tables() as [
    Uint32Array, Uint32Array, Uint32Array, Uint32Array, Uint32Array, Uint32Array, Uint32Array, Uint32Array,
  ];
  let crc = ~so_far;
  let at = 0;
  for (; at + 8 <= bytes.length; at += 8) {
    crc ^= bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
    crc =
      t7[crc & 0xff]! ^ t6[(crc >>> 8) & 0xff]! ^ t5[(crc >>> 16) & 0xff]! ^ t4[crc >>> 24]! ^
      t3[bytes[at + 4]!]! ^ t2[bytes[at + 5]!]! ^ t1[bytes[at + 6]!]! ^ t0[bytes[at + 7]!]!;
  }
  for (; at < bytes.length; at += 1) crc = (crc >>> 8) ^ t0[(crc ^ bytes[at]!) & 0xff]!;
  return ~crc >>> 0;
}

/** As `Repr-Digest` spells it: base64 of the four bytes, most significant first. */
export function spelled(crc: number): string {
  return btoa(String.fromCharCode(crc >>> 24, (crc >>> 16) & 0xff, (crc >>> 8) & 0xff, crc & 0xff));
}

/** A checksum in base64 as 8 hex digits, as most tools print it. */
export function hexOf(checksum: string): string {
  return Array.from(atob(checksum), (letter) => letter.charCodeAt(0).toString(16).padStart(2, "0")).join("");
}

/** The checksum in a `Repr-Digest`, if it has one. */
export function digestOf(header: string | null): string | undefined {
  return header?.match(/crc32c=:([A-Za-z0-9+/=]+):/)?.[1];
}
