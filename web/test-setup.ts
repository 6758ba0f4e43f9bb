import { configure } from "@testing-library/react";

// A test waits for what the page shows, however busy the machine is: these only end one that hangs.
configure({ asyncUtilTimeout: 60_000 });
