/**
 * ESLint rule: code in the page's world uses nothing that a script of the page can replace: no global, no member of
 * the language's or the browser's objects, no iterator, no `instanceof`, no code of another package, and nothing that
 * an object may inherit because it lacks it: an optional property, or any name of a record. In the page script, code
 * that runs when its module is loaded comes before the page (option `early`). What is kept for all other code is in
 * src/shared (kept, primordials, platform) and src/page/natives.ts.
 */

/** No script can replace them: an object has them itself, and not its prototype. */
const FIXED_GLOBALS = ["undefined", "NaN", "Infinity", "window", "document", "location"];
const FIXED_MEMBERS = new RegExp(
  "^prototype of |^length of (?:Array|ReadonlyArray|String|Function|undefined)$|^isTrusted|" +
    String.raw` of \w*(?:Location|Descriptor|Result)$`,
);

/** Of TypeScript's `SymbolFlags`. */
const OPTIONAL = 2 ** 24;
/** Types of objects that inherit nothing. */
const BARE = ["Table", "Fields", "Heard", "Members"];

const MESSAGE = "A script of the page can replace {{what}}. Use primordials.ts, platform.ts or natives.ts.";
const FUNCTION = /^(?:FunctionDeclaration|FunctionExpression|ArrowFunctionExpression)$/;

const isInType = ({ parent }) => parent.type === "TSTypeQuery" || parent.type === "TSQualifiedName";

function create(context) {
  const { program, esTreeNodeToTSNodeMap: typed } = context.sourceCode.parserServices;
  const checker = program.getTypeChecker();

  const runsLater = (node) => context.sourceCode.getAncestors(node).some(({ type }) => FUNCTION.test(type));
  const isEarly = context.options[0] === "early";
  const report = (node, what) =>
    (!isEarly || runsLater(node)) && context.report({ node, message: MESSAGE, data: { what } });

  function checkMember(node, name, symbol, of) {
    const from = symbol?.declarations?.find((each) => program.isSourceFileDefaultLibrary(each.getSourceFile()));
    const member = `${name} of ${from?.parent?.name?.text}`;
    if (from && !FIXED_MEMBERS.test(member)) report(node, member);
    const isOptional = symbol ? symbol.flags & OPTIONAL : isIndexed(of);
    if (!from && isOptional) report(node, `what an object without ${name} inherits`);
  }

  /** Whether any name can be asked for, of an object that may inherit. */
  function isIndexed(type) {
    const names = [type, ...(type.aliasTypeArguments ?? [])].map((each) => (each.aliasSymbol ?? each.symbol)?.name);
    return type.getStringIndexType() !== undefined && !names.some((name) => BARE.includes(name));
  }

  return {
    MemberExpression(node) {
      const of = checker.getTypeAtLocation(typed.get(node.object));
      if (!node.computed && node.property.type === "Identifier")
        checkMember(node, node.property.name, checker.getSymbolAtLocation(typed.get(node.property)), of);
      else if (node.computed && isIndexed(of)) report(node, "what an object without the name inherits");
    },
    "ObjectPattern > Property"(node) {
      const type = checker.getTypeAtLocation(typed.get(node.parent));
      if (node.key.type === "Identifier") checkMember(node, node.key.name, type.getProperty(node.key.name), type);
    },
    ImportDeclaration(node) {
      if (node.importKind !== "type" && node.specifiers.some(({ importKind }) => importKind !== "type"))
        if (node.source.value.startsWith("@tributary/")) report(node, `what ${node.source.value} uses`);
    },
    "ForOfStatement, ArrayPattern, YieldExpression": (node) => report(node, "iterators"),
    ":not(ObjectExpression) > SpreadElement": (node) => report(node, "iterators"),
    "BinaryExpression[operator='instanceof']": (node) => report(node, "Symbol.hasInstance"),
    "Program:exit"() {
      for (const { references } of context.sourceCode.scopeManager.scopes)
        for (const { identifier, isValueReference, resolved } of references)
          if (
            isValueReference &&
            !isInType(identifier) &&
            !resolved?.defs.length &&
            !FIXED_GLOBALS.includes(identifier.name)
          )
            report(identifier, identifier.name);
    },
  };
}

export const primordials = { meta: { type: "problem", schema: [{ enum: ["early"] }] }, create };
