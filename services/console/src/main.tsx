/** The console's entry. */

import { render } from "preact";

render(<main>bothy</main>, document.getElementById("console")!);
