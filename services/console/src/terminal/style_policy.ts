/**
 * xterm's styles where the page's policy lets no script write any.
 *
 * xterm makes `<style>` elements and `style` attributes, both of which `style-src 'self'` stops. Constructed style sheets
 * and `element.style` are the ways of the same meaning that a policy leaves open, since they parse no markup.
 */

/** From here on such elements and attributes of this page take those ways. Once, before the first terminal. */
export function obeyStylePolicy(): void {
  const create = document.createElement.bind(document) as (tag: string, options?: ElementCreationOptions) => HTMLElement;
  document.createElement = ((tag: string, options?: ElementCreationOptions) =>
    tag === "style" ? standIn(create("span")) : create(tag, options)) as typeof document.createElement;

  const setAttribute = Element.prototype.setAttribute;
  Element.prototype.setAttribute = function (this: Element, name: string, value: string): void {
    if (name === "style" && this instanceof HTMLElement) this.style.cssText = value;
    else setAttribute.call(this, name, value);
  };
}

/** An empty element whose text is a style sheet of the page, until the element is removed. */
function standIn(element: HTMLElement): HTMLElement {
  const sheet = new CSSStyleSheet();
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  element.hidden = true;
  let text = "";
  Object.defineProperty(element, "textContent", {
    get: () => text,
    set: (value: string) => {
      text = value;
      sheet.replaceSync(value);
    },
  });
  const remove = element.remove.bind(element);
  element.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((each) => each !== sheet);
    remove();
  };
  return element;
}
