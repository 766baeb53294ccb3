/**
 * DOM: the few helpers that the page is made with. Data enters the document as text nodes and attributes only, never as markup.
 */
export type Child = Node | string;

/** An element with attributes and children; `class` and `data-*` are plain attributes. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K, attributes: Record<string, string> = {}, ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** Sets the text only when it differs, so that a reader's selection survives the next update. */
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

export function setAttribute(element: Element, name: string, value: string): void {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

/** Makes `parent` hold exactly these children in this order, moving as few as it can. */
export function setChildren(parent: Element, children: readonly Element[]): void {
  children.forEach((child, index) => {
    if (parent.children[index] !== child) parent.insertBefore(child, parent.children[index] ?? null);
  });
  while (parent.children.length > children.length) parent.lastElementChild?.remove();
}

export function byId(id: string): HTMLElement {
  const element = document.getElementById(id);
  if (element === null) throw new Error(`the page has no element #${id}`);
  return element;
}

/** One column of a table. On a narrow screen rows become cards, where `cardLabel` (else the label) heads the value. */
export interface Column {
  key: string;
  label: string;
  cardLabel?: string;
  /** Explains the column on hover. */
  title?: string;
  align?: "right";
  /** Heads several columns together. */
  group?: string;
}

/** A table with its head, one `th` per column, and a second row of groups above when a column names one. */
export function table(columns: readonly Column[], className: string): { root: HTMLElement; body: HTMLElement } {
  const head = h("thead");
  if (columns.some((column) => column.group !== undefined)) head.append(groupRow(columns));
  head.append(h("tr", {}, ...columns.map((column) => h("th", {
    scope: "col", ...(column.align ? { class: column.align } : {}), ...(column.title ? { title: column.title } : {}),
  }, column.label))));
  const body = h("tbody");
  return { root: h("div", { class: "scroll" }, h("table", { class: className }, head, body)), body };
}

function groupRow(columns: readonly Column[]): HTMLElement {
  const row = h("tr", { class: "groups" });
  for (let from = 0; from < columns.length;) {
    const group = columns[from]?.group;
    let to = from + 1;
    while (group !== undefined && columns[to]?.group === group) to++;
    row.append(group === undefined ? h("td") : h("th", { colspan: String(to - from), scope: "colgroup" }, group));
    from = to;
  }
  return row;
}

/** An empty row with a cell per column, found again by the column's key. */
export function row(columns: readonly Column[]): { root: HTMLTableRowElement; cells: Map<string, HTMLTableCellElement> } {
  const cells = new Map(columns.map((column) => {
    const label = column.cardLabel ?? column.label;
    return [column.key, h("td", { "data-label": label, "data-key": column.key, ...(column.align ? { class: column.align } : {}) })] as const;
  }));
  return { root: h("tr", {}, ...cells.values()), cells };
}
