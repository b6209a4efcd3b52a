//! Numbers for the names that a script declares with `var`, as parameters and as names of functions.
//!
//! A declaration counts in the whole of its function, before it too; a name behind a point is none. A function's own name
//! counts within it alone.

use std::collections::HashMap;

use super::tokens::{Kind, Token, Tokens};

/// The part of a script in which a declaration counts.
struct Scope<'t> {
    /// The scope around it.
    outer: Option<usize>,
    names: HashMap<&'t [u8], u32>,
    /// Braces that are open in it.
    braces: u32,
    /// How many are around it.
    depth: u32,
}

/// Functions deeper than this share the names of the one that they lie in.
pub(super) const DEPTH_MAX: u32 = 64;

/// Declaration in progress.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Declaring {
    Nothing,
    /// After `var`, and after a comma after it.
    Variable,
    /// After a variable: a comma at this depth of brackets and braces goes on.
    Value {
        depth: u32,
    },
    /// After `function`.
    Function,
    Parameters,
}

/// The numbers of the words that have one, by the places of the words.
pub(super) fn resolve(tokens: &Tokens) -> HashMap<usize, u32> {
    let mut reader = Reader {
        scopes: vec![Scope { outer: None, names: HashMap::new(), braces: 0, depth: 0 }],
        scope: 0,
        declared: 0,
        declaring: Declaring::Nothing,
    };
    let mut words = Vec::new();
    for (index, token) in tokens.all.iter().enumerate() {
        reader.read(token, tokens.text(token));
        let is_property = index > 0 && tokens.is(index - 1, b".");
        if token.kind == Kind::Word && !is_property {
            words.push((index, reader.scope));
        }
    }
    let numbered = words.into_iter().filter_map(|(index, scope)| {
        let name = tokens.text(&tokens.all[index]);
        reader.look_up(scope, name).map(|number| (index, number))
    });
    numbered.collect()
}

struct Reader<'t> {
    scopes: Vec<Scope<'t>>,
    scope: usize,
    declared: u32,
    declaring: Declaring,
}

impl<'t> Reader<'t> {
    fn read(&mut self, token: &Token, text: &'t [u8]) {
        match (token.kind, self.declaring) {
            (Kind::Word, _) if text == b"var" => self.declaring = Declaring::Variable,
            (Kind::Word, _) if text == b"function" => {
                self.enter();
                self.declaring = Declaring::Function;
            }
            (Kind::Word, Declaring::Variable) => {
                self.declare(text);
                self.declaring = Declaring::Value { depth: 0 };
            }
            (Kind::Word, Declaring::Function | Declaring::Parameters) => self.declare(text),
            (Kind::Sign, _) => self.sign(text),
            _ => {}
        }
    }

    fn enter(&mut self) {
        let depth = self.scopes[self.scope].depth + 1;
        if depth <= DEPTH_MAX {
            self.scopes.push(Scope { outer: Some(self.scope), names: HashMap::new(), braces: 0, depth });
            self.scope = self.scopes.len() - 1;
        }
    }

    fn sign(&mut self, text: &[u8]) {
        self.declaring = match (text, self.declaring) {
            (b"(", Declaring::Function) => Declaring::Parameters,
            (b")", Declaring::Parameters) => Declaring::Nothing,
            (b";", Declaring::Value { .. }) => Declaring::Nothing,
            (b",", Declaring::Value { depth: 0 }) => Declaring::Variable,
            (b"[" | b"{", Declaring::Value { depth }) => Declaring::Value { depth: depth + 1 },
            (b"]" | b"}", Declaring::Value { depth }) => Declaring::Value { depth: depth.saturating_sub(1) },
            (_, other) => other,
        };
        let scope = &mut self.scopes[self.scope];
        match text {
            b"{" => scope.braces += 1,
            b"}" => {
                scope.braces = scope.braces.saturating_sub(1);
                if let (0, Some(outer)) = (scope.braces, scope.outer) {
                    self.scope = outer;
                }
            }
            _ => {}
        }
    }

    fn declare(&mut self, name: &'t [u8]) {
        self.scopes[self.scope].names.insert(name, self.declared);
        self.declared += 1;
    }

    fn look_up(&self, scope: usize, name: &[u8]) -> Option<u32> {
        let mut at = Some(scope);
        while let Some(scope) = at.and_then(|at| self.scopes.get(at)) {
            if let Some(&number) = scope.names.get(name) {
                return Some(number);
            }
            at = scope.outer;
        }
        None
    }
}
