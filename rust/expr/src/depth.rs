//! An upper bound on the depth of an expression, computed from its tokens before it is parsed.
//!
//! Each operator after an operand (`+ 1`, `IS NULL`, `::int`, `[1]`) makes the tree one level deeper, however flat the text looks, and
//! whatever walks the tree later recurses once per level. Chains of AND and OR do not count, since they are balanced.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// The greatest depth: such a tree can still be evaluated on any thread's stack.
pub(crate) const DEPTH_LIMIT: usize = 200;

/// Within one pair of parentheses: the operators of the current operand, and the most of any operand before it.
#[derive(Default, Clone, Copy)]
struct Level {
    current: usize,
    deepest: usize,
}

impl Level {
    fn next_operand(&mut self) {
        self.deepest = self.deepest.max(self.current);
        self.current = 0;
    }
}

/// How many CASE there are, any of which may lie within the others: their depths do not add up in [`depth`].
pub(crate) fn cases(tokens: &[TokenWithSpan]) -> usize {
    let is_case = |it: &&TokenWithSpan| matches!(&it.token, Token::Word(word) if word.keyword == Keyword::CASE);
    tokens.iter().filter(is_case).count()
}

/// An upper bound on the depth of the tree. It is close, except that the depths of nested calls add up.
pub(crate) fn depth(tokens: &[TokenWithSpan]) -> usize {
    let mut deepest = 0;
    let mut outer: Vec<Level> = Vec::new();
    let mut outer_depth = 0;
    let mut level = Level::default();
    for TokenWithSpan { token, .. } in tokens {
        match token {
            Token::LParen | Token::LBracket => {
                outer_depth += level.current + 1;
                outer.push(std::mem::take(&mut level));
            }
            Token::RParen | Token::RBracket => {
                level.next_operand();
                let inner = level.deepest + 1;
                level = outer.pop().unwrap_or_default();
                outer_depth = outer_depth.saturating_sub(level.current + 1);
                level.current += inner;
            }
            Token::Comma => level.next_operand(),
            Token::Word(word) => match word.keyword {
                Keyword::AND | Keyword::OR | Keyword::WHEN | Keyword::THEN | Keyword::ELSE => level.next_operand(),
                Keyword::IS
                | Keyword::NOT
                | Keyword::LIKE
                | Keyword::ILIKE
                | Keyword::SIMILAR
                | Keyword::IN
                | Keyword::BETWEEN
                | Keyword::CASE => level.current += 1,
                _ => {}
            },
            Token::Whitespace(_)
            | Token::EOF
            | Token::Number(..)
            | Token::SingleQuotedString(_)
            | Token::DoubleQuotedString(_) => {}
            _ => level.current += 1,
        }
        deepest = deepest.max(outer_depth + level.current);
    }
    deepest
}
