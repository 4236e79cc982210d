// Markets and assets by their names, and figures scaled by them. What stands behind a name is its id.
import { canScale, short } from "./format";
import { assets, labelOf, markets, type AnyRegister, type Asset, type Market, type Named } from "./names";
import { Field, Figure, Id, type Scale } from "./parts";
import { useRaw } from "./raw";
import { link, marketLink, partyLink } from "./route";

/** Characters of what prices are quoted in. */
const QUOTE = 12;

/** Names to choose from at a time. */
const OFFERED = 100;

/** What something is called; its id where it has no name, or where that is not known. */
function Name(props: { id: string; of?: Named<Market | Asset>; href?: string }) {
  const { id, of, href } = props;
  if (!of?.label) return <Id id={id} href={href} />;
  const text = (
    <span class="name" title={of.title} data-value={id} data-exact>
      <bdi>{of.label}</bdi>
      {of.isShared && " "}
      {of.isShared && <code class="id">{short(id)}</code>}
    </span>
  );
  return href ? <a href={href}>{text}</a> : text;
}

/** A market by its code; leads to its page unless another link is given. */
export function MarketName(props: { id: string; href?: string | null }) {
  const { id, href = marketLink(id) } = props;
  return <Name id={id} of={markets.use(id)} href={href ?? undefined} />;
}

/** An asset by its symbol; leads to the markets that settle in it unless another link is given. */
export function AssetName(props: { id: string; href?: string | null }) {
  const { id, href = link("explore/markets", { settlementAsset: id }) } = props;
  return <Name id={id} of={assets.use(id)} href={href ?? undefined} />;
}

/** A party by its id; leads to its page. */
export function Party(props: { id: string }) {
  return <Id id={props.id} href={partyLink(props.id)} />;
}

/** What a number counts, behind it: a name that could be read as more digits of it is none. */
function unit(name: string): string | undefined {
  return /^[\p{L}\p{Sc}]/u.test(name) ? name : undefined;
}

/** How amounts of an asset are shown. `isBeside`: its whole name stands beside them. */
function amountScale(asset: Named<Asset> | undefined, isBeside = false): Scale | undefined {
  if (!asset || !canScale(asset.row.decimals)) return undefined;
  return { places: asset.row.decimals, unit: unit(isBeside ? asset.label : asset.text), unitTitle: asset.title };
}

/** How prices of a market are shown: all with the same number of decimals, so that they stand in columns. */
export function priceScale(market: Market | undefined): Scale | undefined {
  if (!market || !canScale(market.decimalPlaces)) return undefined;
  const { decimalPlaces: places, quoteName } = market;
  const least = Math.max(0, places);
  return { places, least, unit: unit(labelOf(quoteName, QUOTE)), unitTitle: labelOf(quoteName) };
}

/** How sizes and volumes of a market are shown, likewise. */
function sizeScale(market: Market | undefined): Scale | undefined {
  if (!market || !canScale(market.positionDecimalPlaces)) return undefined;
  const { positionDecimalPlaces: places } = market;
  return { places, least: Math.max(0, places) };
}

/** An amount of an asset in its smallest unit. */
export function Amount(props: { value: string; asset: string; isBeside?: boolean }) {
  return <Figure value={props.value} scale={amountScale(assets.use(props.asset), props.isBeside)} />;
}

/** A price of a market. `isNoneAtZero`: 0 means that there is none. */
export function Price(props: { value: string; market: Market | undefined; isNoneAtZero?: boolean }) {
  const isRaw = useRaw();
  if (props.isNoneAtZero && props.value === "0" && !isRaw) {
    return (
      <span class="dim" data-value="0" data-exact>
        –
      </span>
    );
  }
  return <Figure value={props.value} scale={priceScale(props.market)} />;
}

/** A size or a volume of a market. */
export function Size(props: { value: string; market: Market | undefined }) {
  return <Figure value={props.value} scale={sizeScale(props.market)} />;
}

/** A market or an asset, by its name or its id. `value` is an id, or what is typed until it is one. */
export function NameField(props: {
  label: string;
  of: AnyRegister;
  value: string;
  onInput: (value: string) => void;
}) {
  const { known } = props.of.useAll();
  const found = known.get(props.value);
  const { problem, first } = props.of.find(props.value);
  const offered = props.of.matching(found ? "" : props.value).slice(0, OFFERED);
  const typed = (text: string) => props.onInput([...known.values()].find((one) => one.text === text)?.id ?? text);
  return (
    <Field
      label={props.label}
      value={found?.text ?? props.value}
      wide
      hint={problem ?? (known.size > 0 ? "a name or an id" : "an id")}
      wrong={first ? undefined : problem}
      onInput={typed}
      list={offered.map((one) => (
        <option key={one.id} value={one.text}>
          {[one.name, one.state, short(one.id)].join(" · ")}
        </option>
      ))}
    />
  );
}
