/** Operators: who runs the proxies of a download, and what it says that they agree. */
import type { Voucher } from "@tributary/contract/record-fields";
import type { ProxyInfo } from "./api";

/** Proxies whose operator Origo does not name count as those of one operator. */
export const operatorsOf = (proxies: readonly ProxyInfo[]): string[] => proxies.map(({ operator = "" }) => operator);

/** Only such proxies share the reading: two operators that have read the bytes can confirm each other. */
export const isOneOperator = (proxies: readonly ProxyInfo[]): boolean => new Set(operatorsOf(proxies)).size === 1;

/** Agreement needs two operators, because one operator can make all its proxies say the same. */
export const voucherOf = ({ agreeingOperators }: { agreeingOperators: number }): Voucher =>
  agreeingOperators > 1 ? "agreement" : "nobody";
